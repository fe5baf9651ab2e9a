// Making a collective: options and settings become a shape. See collective.hpp.
#include "operations/collective.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "operations/description.hpp"
#include "paths/path.hpp"

namespace tasuki {

namespace {

// TASUKI_ALGORITHM for this collective; the settings have been checked.
std::string setting_for(const std::string& setting, CollectiveKind kind) {
  const std::string wanted = std::string(to_string(kind)) + ':';
  for (std::size_t at = 0; at < setting.size();) {
    const std::size_t end = std::min(setting.find(',', at), setting.size());
    if (setting.compare(at, wanted.size(), wanted) == 0)
      return setting.substr(at + wanted.size(), end - at - wanted.size());
    at = end + 1;
  }
  return "auto";
}

}  // namespace

Description describe(const Context& context, CollectiveCall call, const void* in, void* out,
                     const std::shared_ptr<const Operator::Combine>& combine, const CollectiveOptions& options) {
  const Runtime& runtime = runtime_of(context);
  CollectiveShape& shape = call.shape;
  shape.trees = options.trees;
  shape.arity = options.arity;
  shape.chunk = options.chunk;
  shape.ordered = shape.ordered || options.ordered;
  shape.algorithm =
      options.algorithm != "auto" ? options.algorithm : setting_for(runtime.settings().algorithm, shape.kind);
  shape.path = options.path != "auto" ? options.path : without_directions(runtime.settings().path);
  // `out` of a scatter is what its root may do without, `in` of all others.
  const void* marked = shape.kind == CollectiveKind::scatter ? out : in;
  call.marked = shape.in_place = marked == in_place && shape.kind != CollectiveKind::broadcast;
  call.has_function = combine != nullptr;
  CollectiveOfRank own(runtime.machine(), runtime.rank(), std::move(call), engine_named(runtime, options.engine),
                       options.tune);
  Description d = description_of(context, own, {in, out});
  d.combine = combine;
  return d;
}

}  // namespace tasuki
