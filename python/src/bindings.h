#pragma once

#include <nanobind/nanobind.h>

/// The parts of the module, one file each.
namespace moka::python {

void bind_errors(nanobind::module_& m);
void bind_description(nanobind::module_& m);
void bind_plan(nanobind::module_& m);
void bind_structure(nanobind::module_& m);
void bind_model(nanobind::module_& m);

}  // namespace moka::python
