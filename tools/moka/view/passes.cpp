// SPDX-License-Identifier: Apache-2.0
#include "view/passes.h"

#include <algorithm>
#include <set>

#include "moka/compute_plan.h"
#include "view/document.h"

namespace moka::cli {
namespace {

/// The operations from `i` on that are as deep as `depth`. Deeper ones become one block of the operation before them.
ModelStructure::Block block_of(const OperationList& list, size_t& i, int depth) {
  ModelStructure::Block block;
  while (i < list.operations.size() && list.operations[i].depth >= depth) {
    const auto& from = list.operations[i++];
    ModelStructure::Operation op{.name = from.name, .type = from.type, .outputs = from.outputs};
    for (const auto& [parameter, value] : from.inputs) {
      // An inline constant is listed by its type.
      if (value.find('<') != std::string::npos || value.find('(') != std::string::npos) {
        op.values.emplace_back(parameter, value);
        continue;
      }
      if (op.inputs.empty() || op.inputs.back().first != parameter) op.inputs.push_back({parameter, {}});
      op.inputs.back().second.push_back(value);
    }
    if (i < list.operations.size() && list.operations[i].depth > depth)
      op.blocks.push_back(block_of(list, i, list.operations[i].depth));
    block.operations.push_back(std::move(op));
  }
  return block;
}

bool is_output(const FunctionDescription& function, const std::string& name) {
  return std::any_of(function.outputs.begin(), function.outputs.end(), [&](const auto& f) { return f.name == name; });
}

}  // namespace

Json passes_of(const Model& model) {
  const OperationList list = model.operations();
  ModelStructure structure;
  structure.type = "mlProgram";
  auto& function = structure.functions.emplace_back();
  function.name = list.function;
  function.opset = list.opset;
  size_t i = 0;
  function.body = block_of(list, i, 0);
  for (const auto& f : model.function().inputs) function.body.inputs.emplace_back(f.name, "");
  // Results may have other names than the outputs that they become.
  std::set<std::string> used;
  for (const auto& o : list.operations)
    for (const auto& [parameter, value] : o.inputs) used.insert(value);
  for (const auto& op : function.body.operations)
    for (const auto& [value, type] : op.outputs)
      if (!used.contains(value) || is_output(model.function(), value)) function.body.outputs.push_back(value);
  const ComputePlan plan = model.compute_plan();
  Json out{{"graph", to_json(graph_of(structure, list.function))},
           {"operations", Json::array()},
           {"folded", plan.folded},
           {"operationsInSource", plan.operations_in_source},
           {"remarks", Json::array()}};
  for (const PlannedOperation& p : plan.operations) out["operations"].push_back(to_json(p));
  for (const PassRemark& r : plan.remarks) out["remarks"].push_back({{"pass", r.pass}, {"text", r.text}});
  return out;
}

}  // namespace moka::cli
