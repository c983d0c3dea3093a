#include "convert_to_onnx.h"

#include <fmt/format.h>

#include "json.h"
#include "moka/onnx_export.h"
#include "print.h"
#include "text.h"

namespace moka::cli {
namespace {

Json as_json(const OnnxExport& made) {
  Json unsupported = Json::array();
  for (const UnsupportedOperation& u : made.unsupported)
    unsupported.push_back({{"name", u.name}, {"type", u.type}, {"reason", u.reason}});
  return {{"opset", made.opset},
          {"operations", made.operations},
          {"nodes", made.nodes},
          {"written", made.files},
          {"unsupported", unsupported}};
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

}  // namespace

int convert_to_onnx(const ToOnnxOptions& options) {
  OnnxExportOptions how;
  how.check = options.list;
  how.opset = options.opset;
  how.function = options.function;
  how.external_data = options.external_data;
  const OnnxExport made = export_onnx(options.model, options.destination, how);
  if (options.json) {
    print(rendered(as_json(made)));
  } else if (options.list) {
    print(written_text(made));
  } else {
    for (const std::string& file : made.files) print("wrote " + file + "\n");
    note("convert", fmt::format("{} operations became {} nodes of opset {}", made.operations, made.nodes, made.opset));
  }
  return made.unsupported.empty() ? 0 : 1;
}

}  // namespace moka::cli
