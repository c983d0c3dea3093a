// SPDX-License-Identifier: Apache-2.0
#include "moka/onnx_export.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "asset.h"
#include "bindings.h"
#include "interpreter.h"
#include "values.h"

namespace nb = nanobind;

namespace moka::python {

void bind_onnx_export(nb::module_& m) {
  nb::class_<UnsupportedOperation>(m, "UnsupportedOperation", "An operation that ONNX cannot express.")
      .def_ro("name", &UnsupportedOperation::name)
      .def_ro("type", &UnsupportedOperation::type, "The operation of MIL.")
      .def_ro("reason", &UnsupportedOperation::reason)
      .def("__repr__", [](const UnsupportedOperation& u) { return u.name + " (" + u.type + "): " + u.reason; });
  nb::class_<OnnxExport>(m, "OnnxExport", "What to_onnx did.")
      .def_ro("opset", &OnnxExport::opset)
      .def_ro("operations", &OnnxExport::operations, "Operations of the model, without constants.")
      .def_ro("nodes", &OnnxExport::nodes, "Nodes of the graph.")
      .def_ro("unsupported", &OnnxExport::unsupported)
      .def_ro("files", &OnnxExport::files, "The files that were written.");
  nb::class_<OnnxExportOptions>(m, "OnnxExportOptions")
      .def(nb::init<>())
      .def_rw("check", &OnnxExportOptions::check)
      .def_rw("opset", &OnnxExportOptions::opset)
      .def_rw("function", &OnnxExportOptions::function)
      .def_rw("external_data", &OnnxExportOptions::external_data)
      .def_prop_rw(
          "force", [](const OnnxExportOptions& o) { return o.overwrite == Overwrite::any; },
          [](OnnxExportOptions& o, bool force) { o.overwrite = overwrite(force); });
  m.def(
      "export_onnx",
      [](const std::string& path, const std::string& destination, const OnnxExportOptions& options) {
        const Unlocked unlocked;
        return export_onnx(path, destination, options);
      },
      nb::arg("path"), nb::arg("destination"), nb::arg("options"));
  m.def(
      "export_asset_onnx",
      [](const nb::object& specification, const Dict& blobs, const std::string& destination,
         const OnnxExportOptions& options) {
        const ModelAssetView asset = asset_of(specification, blobs);
        const Unlocked unlocked;
        return export_onnx(asset, destination, options);
      },
      nb::arg("specification"), nb::arg("blobs"), nb::arg("destination"), nb::arg("options"));
  m.def(
      "export_mil_onnx",
      [](const std::string& text, const Dict& blobs, const std::string& destination, const OnnxExportOptions& options) {
        const auto weights = files_of(blobs);
        const Unlocked unlocked;
        return export_mil_onnx(text, destination, options, weights);
      },
      nb::arg("text"), nb::arg("blobs"), nb::arg("destination"), nb::arg("options"));
}

}  // namespace moka::python
