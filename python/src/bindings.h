// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "moka/description.h"
#include "moka/output.h"

namespace moka::python {

/// `text` and `html` name functions of moka._reports that describe an object.
template <class Class>
void bind_report(Class& bound, const char* text, const char* html) {
  const auto say = [](const char* function) {
    return
        [function](nanobind::handle self) { return nanobind::module_::import_("moka._reports").attr(function)(self); };
  };
  if (text != nullptr) bound.def("__repr__", say(text), nanobind::sig("def __repr__(self) -> str"));
  bound.def("_repr_html_", say(html), nanobind::sig("def _repr_html_(self) -> str"));
}

/// What `force` of a function that writes means.
inline Overwrite overwrite(bool force) { return force ? Overwrite::any : Overwrite::own_kind; }

/// A color space by its name in Python: "rgb". Raises InvalidArgumentError.
ColorSpace color_of(const std::string& name);

/// The parts of the module, one per file.

void bind_errors(nanobind::module_& m);
void bind_values(nanobind::module_& m);
void bind_pixel_buffer(nanobind::module_& m);
void bind_description(nanobind::module_& m);
void bind_update_description(nanobind::module_& m);
void bind_plan(nanobind::module_& m);
void bind_structure(nanobind::module_& m);
void bind_model(nanobind::module_& m);
void bind_custom(nanobind::module_& m);
void bind_trace(nanobind::module_& m);
void bind_draw(nanobind::module_& m);
void bind_shared_buffer(nanobind::module_& m);
void bind_build(nanobind::module_& m);
void bind_edit(nanobind::module_& m);
void bind_lint(nanobind::module_& m);
void bind_compress(nanobind::module_& m);
void bind_diff(nanobind::module_& m);
void bind_onnx_export(nanobind::module_& m);
void bind_encryption(nanobind::module_& m);
void bind_update_task(nanobind::module_& m);
void bind_verify(nanobind::module_& m);
void bind_performance(nanobind::module_& m);
/// Lets go of registered classes at the end of the interpreter. Before bind_end: what ends first is bound last.
void bind_forgetting();

}  // namespace moka::python
