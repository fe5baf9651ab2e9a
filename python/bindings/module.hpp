// What each file of the bindings adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace tasuki::python {

void bind_context_and_grid(nanobind::module_& m);
void bind_memory(nanobind::module_& m);
void bind_device(nanobind::module_& m);
void bind_exchange(nanobind::module_& m);
void bind_field(nanobind::module_& m);
void bind_graph(nanobind::module_& m);
void bind_kernel(nanobind::module_& m);
void bind_layout(nanobind::module_& m);
void bind_made(nanobind::module_& m);
void bind_offline(nanobind::module_& m);
void bind_plan(nanobind::module_& m);
void bind_operations(nanobind::module_& m);
void bind_operators(nanobind::module_& m);
void bind_collectives(nanobind::module_& m);
void bind_predict(nanobind::module_& m);
void bind_redistribute(nanobind::module_& m);
void bind_tune(nanobind::module_& m);

/// After all others: calls that do not fit a function raise a TypeError that names the argument.
void complain_in_words(nanobind::module_& m);

}  // namespace tasuki::python
