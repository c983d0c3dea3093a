// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "asset.h"
#include "bindings.h"
#include "command.h"
#include "interpreter.h"
#include "moka/compiler.h"

namespace nb = nanobind;
using moka::python::Unlocked;

NB_MODULE(_moka, m) {
  m.doc() = "The compiled part of moka.";
  m.attr("__version__") = MOKA_VERSION;
  moka::python::bind_forgetting();
  moka::python::bind_end();
  moka::python::bind_warnings();
  moka::python::bind_errors(m);
  moka::python::bind_values(m);
  moka::python::bind_pixel_buffer(m);
  moka::python::bind_description(m);
  moka::python::bind_plan(m);
  moka::python::bind_structure(m);
  moka::python::bind_model(m);
  moka::python::bind_custom(m);
  moka::python::bind_trace(m);
  moka::python::bind_draw(m);
  moka::python::bind_shared_buffer(m);
  moka::python::bind_build(m);
  moka::python::bind_edit(m);
  moka::python::bind_lint(m);
  moka::python::bind_compress(m);
  moka::python::bind_diff(m);
  moka::python::bind_onnx_export(m);
  moka::python::bind_encryption(m);
  moka::python::bind_update_task(m);
  moka::python::bind_verify(m);
  moka::python::bind_performance(m);
  m.def(
      "compile_model",
      [](const std::string& path, const std::string& destination, bool strict, bool force) {
        return moka::python::texts_of(
            moka::compile_model(path, destination, {false, strict, moka::python::overwrite(force)}));
      },
      nb::arg("path"), nb::arg("destination"), nb::arg("strict") = false, nb::arg("force") = false,
      nb::call_guard<Unlocked>());
  m.def(
      "write_page",
      [](const std::string& path, const std::string& text, bool force) {
        moka::write_file(path, moka::FileKind::page, std::as_bytes(std::span(text)), moka::python::overwrite(force));
      },
      nb::arg("path"), nb::arg("text"), nb::arg("force") = false, nb::call_guard<Unlocked>());
  m.def(
      "main",
      [](std::vector<std::string> arguments) {
        std::vector<char*> argv;
        for (std::string& a : arguments) argv.push_back(a.data());
        argv.push_back(nullptr);
        return moka::cli::run(static_cast<int>(arguments.size()), argv.data());
      },
      nb::arg("arguments"), nb::call_guard<Unlocked>());
}
