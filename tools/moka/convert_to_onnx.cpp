// SPDX-License-Identifier: Apache-2.0
#include "convert_to_onnx.h"

#include <fmt/format.h>

#include <filesystem>

#include "check/python_script.h"
#include "io/io_error.h"
#include "json.h"
#include "moka/onnx_export.h"
#include "print.h"
#include "temporary_folder.h"
#include "text.h"

namespace moka::cli {

extern const unsigned char check_onnx_bytes[];
extern const unsigned long check_onnx_size;

namespace {

namespace fs = std::filesystem;

Json as_json(const OnnxExport& made, bool checked) {
  Json unsupported = Json::array();
  for (const UnsupportedOperation& u : made.unsupported)
    unsupported.push_back({{"name", u.name}, {"type", u.type}, {"reason", u.reason}});
  return {{"opset", made.opset}, {"operations", made.operations}, {"nodes", made.nodes}, {"written", made.files},
          {"checked", checked},  {"unsupported", unsupported}};
}

std::string written_text(const OnnxExport& made) {
  if (made.unsupported.empty())
    return fmt::format("ONNX has all {} operations: {} nodes of opset {}\n", made.operations, made.nodes, made.opset);
  size_t name = 0, type = 0;
  for (const UnsupportedOperation& u : made.unsupported) {
    name = std::max(name, u.name.size());
    type = std::max(type, u.type.size());
  }
  std::string out = fmt::format("ONNX cannot express {} of {} operations:\n", made.unsupported.size(), made.operations);
  for (const UnsupportedOperation& u : made.unsupported)
    out += fmt::format("  {:<{}}  {:<{}}  {}\n", u.name, name, u.type, type, u.reason);
  return out;
}

/// Writes the files beside the destination, and moves them there once onnx.checker accepts them.
OnnxExport checked_export(const ToOnnxOptions& options, const OnnxExportOptions& how, const Outputs& outputs) {
  const fs::path destination = options.destination;
  const TemporaryFolder folder("check", destination.has_parent_path() ? destination.parent_path() : fs::path("."));
  const fs::path next = folder.path() / destination.filename();
  OnnxExport made = export_onnx(options.model, next.string(), how);
  run_python({reinterpret_cast<const char*>(check_onnx_bytes), check_onnx_size}, {next.string()}, options.destination);
  const auto final_path = [&](const std::string& file) {
    return destination.parent_path() / fs::path(file).filename();
  };
  for (const std::string& file : made.files) {
    const std::string to = final_path(file).string();
    outputs.check(to, to.ends_with(".data") ? FileKind::onnx_data : FileKind::onnx);
  }
  for (std::string& file : made.files) {
    const fs::path to = final_path(file);
    std::error_code error;
    fs::rename(file, to, error);
    if (error) io::fail(to.string(), "cannot be written: ", error.message());
    file = to.string();
  }
  return made;
}

}  // namespace

int convert_to_onnx(const ToOnnxOptions& options, const Outputs& outputs) {
  OnnxExportOptions how;
  how.check = options.list;
  how.opset = options.opset;
  how.function = options.function;
  how.external_data = options.external_data;
  how.overwrite = outputs.overwrite();
  const OnnxExport made =
      options.check ? checked_export(options, how, outputs) : export_onnx(options.model, options.destination, how);
  if (options.json) {
    print(rendered(as_json(made, options.check)));
  } else if (options.list) {
    print(written_text(made));
  } else {
    for (const std::string& file : made.files) print("wrote " + file + "\n");
    note("convert", fmt::format("{} operations became {} nodes of opset {}{}", made.operations, made.nodes, made.opset,
                                options.check ? ", which onnx.checker accepts" : ""));
  }
  return made.unsupported.empty() ? 0 : 1;
}

}  // namespace moka::cli
