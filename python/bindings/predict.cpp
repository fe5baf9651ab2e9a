// Prediction: what an epoch takes, from plans.
#include "tasuki/predict.hpp"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "module.hpp"
#include "operation.hpp"

namespace tasuki::python {

void bind_predict(nb::module_& m) {
  nb::class_<Prediction>(m, "Prediction", "What an epoch is predicted to take (docs/planning.md). Times are seconds.")
      .def_ro("seconds", &Prediction::seconds, "Of the slowest rank, when all start together.")
      .def_ro("back_to_back", &Prediction::back_to_back,
              "An epoch, when every rank starts the next as soon as one has ended.")
      .def_ro("ranks", &Prediction::ranks, "Per rank, when all start together.")
      .def_prop_ro(
          "busy",
          [](const Prediction& p) {
            std::vector<std::pair<std::string, double>> busy;
            for (const auto& one : p.busy) busy.emplace_back(one.resource, one.seconds);
            return busy;
          },
          "Pairs of resource and seconds, busiest first.")
      .def_prop_ro(
          "commands",
          [](const Prediction& p) {
            std::vector<std::vector<std::pair<double, double>>> all;
            for (const auto& rank : p.commands) {
              all.emplace_back();
              for (const auto& span : rank) all.back().emplace_back(span.begin, span.end);
            }
            return all;
          },
          "Begin and end of each command, [rank][command of its plan].")
      .def_ro("between_islands", &Prediction::between_islands, "Bytes that cross from island to island.")
      .def_ro("guessed", &Prediction::guessed, "Paths whose prices were not measured.")
      .def("text", &Prediction::text, "The total, the three busiest resources and the critical path, for people.")
      .def("__repr__", [](const Prediction& p) {
        return fmt::format("<tasuki.Prediction {:.3f} us on {} ranks>", p.seconds * 1e6, p.ranks.size());
      });
  nb::class_<Advice>(
      m, "Advice",
      "Which engine pays beside a computation (docs/planning.md). Times are seconds, of an iteration that "
      "starts the operation, computes and waits.")
      .def_ro("computation", &Advice::computation, "The computation by itself.")
      .def_prop_ro(
          "ways",
          [](const Advice& advice) {
            std::vector<std::tuple<std::string, double, double, std::string>> all;
            for (const auto& way : advice.ways) all.emplace_back(way.engine, way.seconds, way.exposed, way.how);
            return all;
          },
          "Of each engine, the simplest first: its name, seconds of an iteration, seconds that the computation does "
          "not "
          "hide, and what these are made of.")
      .def_prop_ro(
          "pays", [](const Advice& advice) { return advice.ways[advice.best].engine; },
          "The engine that pays: the fastest, or what is simpler and as fast.")
      .def("text", &Advice::text, "A table, and a line that says what pays.")
      .def("__repr__", [](const Advice& advice) {
        return fmt::format("<tasuki.Advice '{}' beside {:.3f} us>", advice.ways[advice.best].engine,
                           advice.computation * 1e6);
      });
  m.def(
      "advise", [](const PyOperation& op, double computation) { return advise(op.operation(), computation); },
      nb::arg("operation"), nb::arg("computation"),
      "Which engine pays beside a computation of so many seconds, given the cores that the ranks may use; every rank "
      "gets "
      "the same. Collective.");
  m.def(
      "predict", [](const PyOperation& op) { return predict(op.operation()); }, nb::arg("operation"),
      "Gathers the plans of all ranks and predicts what an epoch takes; every rank gets the same. Collective.");
}

}  // namespace tasuki::python
