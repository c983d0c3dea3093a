// SPDX-License-Identifier: Apache-2.0
#include "convert_from_onnx.h"

#include <fmt/format.h>

#include "json.h"
#include "moka/onnx_import.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

/// "name=text"; `value` names the text in errors.
std::pair<std::string, std::string> assignment(const std::string& text, std::string_view option,
                                               std::string_view value) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0)
    throw UsageError(fmt::format("{}: expected NAME={}, got '{}'", option, value, text));
  return {text.substr(0, at), text.substr(at + 1)};
}

int64_t size_of(std::string_view text, std::string_view option) {
  const auto n = parse_integer(trimmed(text));
  if (!n || *n < 0) throw UsageError(fmt::format("{}: expected a size, got '{}'", option, text));
  return *n;
}

OnnxImportOptions import_options(const FromOnnxOptions& options) {
  OnnxImportOptions out;
  out.opset = options.opset;
  for (const std::string& text : options.dimensions) {
    const auto [name, size] = assignment(text, "--dimension", "SIZE");
    out.dimensions[name] = size_of(size, "--dimension");
  }
  for (const std::string& text : options.lengths) {
    const auto [name, length] = assignment(text, "--length", "N");
    out.lengths[name] = size_of(length, "--length");
  }
  out.absent.insert(options.absent.begin(), options.absent.end());
  for (const std::string& text : options.shapes) {
    const auto [name, sizes] = assignment(text, "--shape", "SIZES");
    std::vector<int64_t>& shape = out.shapes[name];
    for (size_t begin = 0; begin <= sizes.size();) {
      const size_t end = std::min(sizes.find_first_of(",x", begin), sizes.size());
      shape.push_back(size_of(std::string_view(sizes).substr(begin, end - begin), "--shape"));
      begin = end + 1;
    }
  }
  return out;
}

Json features_json(const std::vector<OnnxFeature>& features) {
  Json out = Json::array();
  for (const OnnxFeature& f : features) out.push_back({{"name", f.name}, {"feature", f.feature}, {"type", f.type}});
  return out;
}

}  // namespace

int convert_from_onnx(const FromOnnxOptions& options, const Outputs& outputs) {
  if (!has_extension(options.destination, ".mlpackage"))
    throw UsageError(fmt::format("'{}': expected a name that ends in .mlpackage", options.destination));
  const OnnxImport made = import_onnx(options.model, import_options(options));
  made.source.save(options.destination, outputs.overwrite());
  if (options.json) {
    print(rendered(Json{{"written", options.destination},
                        {"inputs", features_json(made.inputs)},
                        {"outputs", features_json(made.outputs)},
                        {"remarks", made.remarks}}));
    return 0;
  }
  for (const std::string& remark : made.remarks) note("convert", remark);
  for (const auto* list : {&made.inputs, &made.outputs})
    for (const OnnxFeature& f : *list)
      if (f.name != f.feature) note("convert", fmt::format("'{}' is called '{}' in the program", f.name, f.feature));
  print("wrote " + options.destination + "\n");
  return 0;
}

}  // namespace moka::cli
