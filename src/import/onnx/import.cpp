// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/import.h"

#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/interface.h"
#include "import/onnx/node.h"
#include "import/onnx/registry.h"

namespace moka::import::onnx {
namespace {

const std::vector<std::pair<std::string, OperatorImport>>& sorted() {
  static const auto* list = [] {
    auto* out = new std::vector<std::pair<std::string, OperatorImport>>();
    for (const auto& family : families())
      for (const OperatorImport& o : family) out->emplace_back(cat(o.domain, ".", o.name), o);
    std::sort(out->begin(), out->end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return out;
  }();
  return *list;
}

Imported import_graph(const format::onnx::ModelFile& file, const Options& options) {
  const format::onnx::Model& model = file.model;
  Imported out;
  Context context{file, options, {}, {}};
  Opsets opsets;
  for (const format::onnx::OperatorSet& o : model.opsets) opsets[domain_of(o.domain)] = o.version;
  constexpr int64_t oldest = 1, newest = 28;
  if (const auto it = opsets.find(""); it != opsets.end() && (it->second < oldest || it->second > newest))
    refuse(ErrorCode::unsupported, "opset ", it->second, ": expected ", oldest, " to ", newest);
  out.program.functions.push_back(std::make_unique<ir::Function>("main", options.opset));
  ir::Function& f = *out.program.functions.back();
  ir::Builder builder(ops::table(), f.body());
  Scope scope(context, builder, opsets, nullptr);
  Interface interface(scope, out);
  interface.check_options(model.graph.inputs);
  for (const format::onnx::ValueInfo& input : model.graph.inputs) {
    const auto& tensors = model.graph.initializers;
    const auto given = [&](const format::onnx::Tensor& t) { return t.name == input.name; };
    if (std::none_of(tensors.begin(), tensors.end(), given)) interface.add_input(input);
  }
  run_graph(scope, model.graph);
  interface.add_outputs(model.graph.outputs);
  if (out.outputs.empty()) refuse(ErrorCode::unsupported, "the graph has no outputs with a value");
  std::vector<Value*> results;
  for (const Feature& feature : out.outputs) results.push_back(feature.value);
  f.body().set_outputs(std::move(results));
  out.remarks = std::move(context.remarks);
  return out;
}

}  // namespace

const OperatorImport* find_operator(std::string_view domain, std::string_view name) {
  const std::string key = cat(domain, ".", name);
  const auto& list = sorted();
  const auto it = std::lower_bound(list.begin(), list.end(), key,
                                   [](const auto& entry, const std::string& k) { return entry.first < k; });
  return it != list.end() && it->first == key ? &it->second : nullptr;
}

std::vector<std::string> operators() {
  std::vector<std::string> out;
  for (const auto& [key, entry] : sorted()) out.push_back(key.starts_with(".") ? cat("ai.onnx", key) : key);
  std::sort(out.begin(), out.end());
  return out;
}

Result<Imported> import_model(const format::onnx::ModelFile& file, const Options& options) {
  try {
    return import_graph(file, options);
  } catch (Failure& f) {
    return std::move(f.error);
  }
}

}  // namespace moka::import::onnx
