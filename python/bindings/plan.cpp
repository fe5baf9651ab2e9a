// Plan and the verifier: what an operation will do, as data.
#include "tasuki/plan.hpp"

#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arguments.hpp"
#include "module.hpp"
#include "operation.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

namespace tasuki::python {
namespace {

Plan plan_from(nb::handle value, std::size_t index) {
  if (nb::isinstance<Plan>(value)) return inside<Plan>(value);
  std::string text;
  if (!nb::try_cast(value, text))
    throw Error(fmt::format("plans[{}] is {}; it must be a Plan or its JSON text", index, shown(value)));
  try {
    return plan_from_json(text);
  } catch (const Error& error) {
    throw Error(fmt::format("plans[{}]: {}", index, error.what()));
  }
}

std::vector<Plan> plans_from(const std::vector<nb::object>& values) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < values.size(); ++i) plans.push_back(plan_from(values[i], i));
  return plans;
}

}  // namespace

void bind_plan(nb::module_& m) {
  nb::class_<Plan>(m, "Plan", "What one rank does in one epoch of an operation, as pure data (docs/concepts.md).")
      .def_static(
          "from_json", [](const std::string& text) { return plan_from_json(text); }, nb::arg("text"),
          "Raises tasuki.Error saying where and what.")
      .def_static(
          "from_text", [](const std::string& text) { return plan_from_text(text); }, nb::arg("text"),
          "Raises tasuki.Error with the line number.")
      .def(
          "json", [](const Plan& plan) { return to_json(plan); }, "`Plan.from_json(plan.json()) == plan`.")
      .def(
          "text", [](const Plan& plan) { return to_text(plan); }, "One command a line, for people and diffs.")
      .def("complaints", &Plan::complaints, "What is wrong with this plan by itself, a line each; empty if sound.")
      .def_ro("operation", &Plan::operation)
      .def_ro("rank", &Plan::rank)
      .def_ro("ranks", &Plan::ranks)
      .def_ro("paths", &Plan::paths)
      .def_prop_ro("memory", &Plan::memory, "Bytes that the plan's arrays occupy.")
      .def("__len__", [](const Plan& plan) { return plan.commands.size(); })
      .def(nb::self == nb::self)
      .def("__repr__", [](const Plan& plan) {
        return fmt::format("<tasuki.Plan '{}' of rank {} of {}, {} commands>", plan.operation, plan.rank, plan.ranks,
                           plan.commands.size());
      });
  m.attr("Plan").attr("__hash__") = nb::none();  // as Python has it for what is equal by value and has no cheap hash
  nb::class_<VerifyReport>(m, "VerifyReport", "What the verifier found; true if nothing.")
      .def_prop_ro("ok", &VerifyReport::ok)
      .def_ro("problems", &VerifyReport::problems, "One sentence each, naming ranks, commands and buffers.")
      .def_ro("commands", &VerifyReport::commands, "Command instances executed, all ranks and epochs.")
      .def_ro("bytes", &VerifyReport::bytes, "Bytes whose provenance was followed in one epoch.")
      .def("text", &VerifyReport::text)
      .def("__bool__", &VerifyReport::ok)
      .def("__repr__", &VerifyReport::text);
  m.def(
      "verify", [](const PyOperation& op, int epochs) { return verify(op.operation(), epochs); }, nb::arg("operation"),
      nb::arg("epochs") = 0,
      R"(Gathers the plans of all ranks and checks them together; every rank gets the same report. Collective.

epochs: how many to run symbolically; 0: enough that every buffer is used again.)");
  m.def(
      "verify", [](const Planned& planned, int epochs) { return verify(planned.plans(), epochs); }, nb::arg("plans"),
      nb::arg("epochs") = 0, "The same for plans that were made off line. Local.");
  const char* all_ranks = "Checks the plans of all ranks (index = rank), given as Plans or JSON texts. Local.";
  const auto verify_all = [](const std::vector<nb::object>& values, int epochs) {
    return verify(plans_from(values), epochs);
  };
  m.def("verify", verify_all, nb::arg("plans"), nb::arg("epochs") = 0,
        nb::sig("def verify(plans: Sequence[Plan | str], epochs: SupportsIndex = 0) -> VerifyReport"), all_ranks);
  m.def("verify_plans", verify_all, nb::arg("plans"), nb::arg("epochs") = 0,
        nb::sig("def verify_plans(plans: Sequence[Plan | str], epochs: SupportsIndex = 0) -> VerifyReport"), all_ranks);
  nb::class_<NeighbourhoodReport, VerifyReport>(m, "NeighbourhoodReport", "A VerifyReport by neighbourhoods.")
      .def_ro("classes", &NeighbourhoodReport::classes,
              "Of ranks with equal plans and peers; one of each was verified.")
      .def("text", &NeighbourhoodReport::text)
      .def("__repr__", &NeighbourhoodReport::text);
  m.def(
      "verify_neighbourhoods", [](const Planned& planned) { return verify_neighbourhoods(planned.plans()); },
      nb::arg("plans"), "The same for plans that were made off line.");
  m.def(
      "verify_neighbourhoods",
      [](const std::vector<nb::object>& values) { return verify_neighbourhoods(plans_from(values)); }, nb::arg("plans"),
      nb::sig("def verify_neighbourhoods(plans: Sequence[Plan | str]) -> NeighbourhoodReport"),
      R"(Checks plans of more ranks than `verify` could follow: one rank of each class with its peers. Local.

Ranks whose plans and whose peers' plans are equal but for the ranks' names are a class. Flaws that take ranks farther
apart are not seen. Raises tasuki.Error for plans whose lanes deal with several ranks at once (broadcasts).)");
}

}  // namespace tasuki::python
