// SPDX-License-Identifier: Apache-2.0
#include "diff/graph.h"

#include <algorithm>

namespace moka::diff {
namespace {

bool is_transparent(const ir::Op& op) {
  if (op.type_name() == "identity") return true;
  const ir::Value* x = op.type_name() == "cast" ? op.input("x") : nullptr;
  return x != nullptr && x->type.is_tensor() && is_float(x->type.dtype()) && is_float(op.output()->type.dtype());
}

}  // namespace

Graph::Graph(const ir::Function& function) : function_(function) {
  add(function.body(), 0, -1);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].is_transparent) continue;
    for (const ir::Operand& operand : nodes_[i].op->operands())
      for (size_t n = 0; n < operand.values.size(); ++n)
        uses_[resolved(operand.values[n])].push_back({static_cast<int>(i), parameter(*nodes_[i].op, operand), n});
  }
}

void Graph::add(const ir::Block& block, int depth, int parent) {
  for (const auto& op : block.ops()) {
    for (const ir::Operand& operand : op->operands())
      for (const ir::Value* value : operand.values)
        if (value->is_inline_constant()) add_sample(*value);
    if (fold(*op)) continue;
    const int index = static_cast<int>(nodes_.size());
    index_[op.get()] = index;
    nodes_.push_back({op.get(), depth, parent, is_transparent(*op)});
    for (size_t b = 0; b < op->block_count(); ++b) add(*op->block(b), depth + 1, index);
  }
}

/// Whether all outputs are constants, which get samples.
bool Graph::fold(const ir::Op& op) {
  if (op.has_trait(ir::Trait::control) || op.output_count() == 0) return false;
  if (!op.has_trait(ir::Trait::constant))
    for (const ir::Operand& operand : op.operands())
      for (const ir::Value* value : operand.values)
        if (!is_constant(value)) return false;
  bool all = true;
  for (size_t i = 0; i < op.output_count() && all; ++i) all = add_sample(*op.output(i));
  if (!all)
    for (size_t i = 0; i < op.output_count(); ++i) samples_.erase(op.output(i));
  return all;
}

/// False: the value is not known.
bool Graph::add_sample(const ir::Value& value) {
  if (value.constant() != nullptr && !value.type.is_tensor()) {
    samples_[&value].text = list_text(*value.constant());
    return true;
  }
  const auto tensor = tensor_of(value);
  if (tensor) samples_.emplace(&value, sample_of(*tensor));
  return tensor.has_value();
}

int Graph::index_of(const ir::Op* op) const {
  const auto at = index_.find(op);
  return at == index_.end() ? -1 : at->second;
}

const ir::Value* Graph::resolved(const ir::Value* value) const {
  while (value != nullptr && value->producer() != nullptr && !is_constant(value)) {
    const int node = index_of(value->producer());
    if (node < 0 || !nodes_[static_cast<size_t>(node)].is_transparent) break;
    value = value->producer()->input("x");
  }
  return value;
}

const std::vector<Graph::Use>& Graph::uses(const ir::Value* value) const {
  static const std::vector<Use> none;
  const auto at = uses_.find(value);
  return at == uses_.end() ? none : at->second;
}

std::span<ir::Value* const> Graph::values(const ir::Op& op, std::string_view parameter) {
  for (const ir::Operand& operand : op.operands())
    if (Graph::parameter(op, operand) == parameter) return operand.values;
  return {};
}

}  // namespace moka::diff
