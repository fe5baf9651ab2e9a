// Making collectives of two buffers, and barriers.
#include <fmt/format.h>

#include "making.hpp"
#include "module.hpp"

namespace tasuki::python {

NewOperation made_collective(const ContextHandle& context, const Shape& shape, const Given& given,
                             const MakeCollective& make) {
  const std::shared_ptr<Owner>& owner = context.owner;
  NewOperation made{owner, {}};
  Asked asked;
  Told told;
  owner->agree(shape.name, [&] {
    Reading reading(owner->context(), made.core);
    asked.read(reading, shape, given, owner->context());
    told = reading.told;
  });
  asked.with_layouts = Told::of_all(owner->context(), shape.name, told, shape.combined).layouts;
  made.core.operation = make(owner->context(), asked);
  if (made.core.operation.where() == Memory::device) made.core.fork.emplace();
  return made;
}

void refuse_layouts(const Shape& shape, const Asked& asked) {
  if (asked.with_layouts)
    throw Error(
        fmt::format("{}: arguments 'source' and 'target' must be contiguous arrays, without layouts", shape.name));
}

NewOperation made_barrier(const ContextHandle& context, const std::string& where, const CollectiveOptions& options) {
  const std::shared_ptr<Owner>& owner = context.owner;
  NewOperation made{owner, {}};
  owner->agree("Barrier", [&] {
    if (where != "host" && where != "device")
      throw Error(fmt::format("argument 'where' is '{}'; it must be 'host' or 'device'", where));
  });
  made.core.operation = Barrier(owner->context(), where == "device" ? Memory::device : Memory::host, options);
  if (made.core.operation.where() == Memory::device) made.core.fork.emplace();
  return made;
}

void bind_collectives(nb::module_& m) {
  nb::class_<InPlace>(m, "_InPlace", "The type of `in_place`.").def("__repr__", [](const InPlace&) {
    return "tasuki.in_place";
  });
  m.attr("in_place") = nb::cast(InPlace{});
}

}  // namespace tasuki::python
