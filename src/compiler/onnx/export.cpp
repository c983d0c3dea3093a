// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/export.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/onnx/boundary.h"
#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

/// The version of ONNX's file format that introduced an opset.
int64_t ir_version(int opset) { return opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : 11; }

Result<Exported> write(const ir::Function& function, const import::FunctionDescription& described,
                       const import::ModelDescription& model, const ExportOptions& options, int opset, int& required) {
  Exported out;
  Graph graph(function, opset, options.opset == 0);
  MOKA_TRY(add_inputs(graph, function, described));
  write_block(graph, function.body(), out.unexpressed, out.operations);
  if (out.unexpressed.empty()) MOKA_TRY(add_outputs(graph, function, described));
  required = graph.required();
  ox::Model& m = out.model;
  m.ir_version = ir_version(opset);
  m.producer_name = "moka";
  m.producer_version = options.producer_version;
  m.doc_string = model.short_description;
  m.opsets.push_back({"", opset});
  constexpr int ml_version = 3;
  for (const std::string& domain : graph.ml_domain) m.opsets.push_back({domain, ml_version});
  graph.main().name = function.name;
  m.metadata = metadata(described, model);
  out.nodes = graph.node_count;
  m.graph = std::move(graph.main());
  return out;
}

}  // namespace

Result<Exported> export_function(const ir::Function& function, const import::FunctionDescription& described,
                                 const import::ModelDescription& model, const ExportOptions& options) {
  if (options.opset != 0 && (options.opset < kOldestOpset || options.opset > kNewestOpset))
    return fail(ErrorCode::invalid_argument, "opset: expected ", kOldestOpset, " to ", kNewestOpset, ", got ",
                options.opset);
  int opset = options.opset != 0 ? options.opset : kOldestOpset;
  for (;;) {
    int required = opset;
    Exported out = MOKA_TRY(write(function, described, model, options, opset, required));
    if (required <= opset) return out;
    opset = required;
  }
}

}  // namespace moka::compiler::onnx
