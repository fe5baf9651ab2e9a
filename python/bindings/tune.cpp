// Tuning collectives, for `tasuki tune --collectives`.
#include "tasuki/tune.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "module.hpp"
#include "owner.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

std::string tune(const ContextHandle& context, const std::vector<std::string>& kinds,
                 const std::vector<std::int64_t>& sizes, bool device, int rounds, double round_seconds) {
  TuneOptions options;
  for (const std::string& kind : kinds) options.kinds.push_back(collective_from_string(kind));
  options.sizes = sizes;
  options.memory = device ? Memory::device : Memory::host;
  options.rounds = rounds;
  options.round_seconds = round_seconds;
  return tune_collectives(context.owner->context(), options).to_json();
}

}  // namespace

void bind_tune(nb::module_& m) {
  m.def("_tune_collectives", tune, nb::arg("context"), nb::arg("kinds"), nb::arg("sizes"), nb::arg("device"),
        nb::arg("rounds"), nb::arg("round_seconds"));
}

}  // namespace tasuki::python
