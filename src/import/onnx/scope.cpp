// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/scope.h"

#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/node.h"

namespace moka::import::onnx {

void Context::remark(std::string text) {
  if (std::find(remarks.begin(), remarks.end(), text) == remarks.end()) remarks.push_back(std::move(text));
}

const Item* Scope::find(const std::string& name) const {
  for (const Scope* s = this; s != nullptr; s = s->outer_)
    if (const auto it = s->items_.find(name); it != s->items_.end()) return &it->second;
  return nullptr;
}

Item& Scope::own(const std::string& name) {
  if (const auto it = items_.find(name); it != items_.end()) return it->second;
  const Item* outer = find(name);
  if (outer == nullptr)
    refuse(ErrorCode::malformed, "value '", name, "' is neither an input nor computed before it is read");
  Item& own = items_[name];
  own = *outer;
  return own;
}

Value* Scope::value(Item& item, std::string_view name) const {
  if (item.value != nullptr) return item.value;
  if (item.is_sequence) refuse(ErrorCode::unsupported, "value '", name, "': a sequence where a tensor is read");
  if (item.labels != nullptr)
    refuse(ErrorCode::unsupported, "value '", name, "': Core ML's programs compute with no ",
           item.labels->scores != nullptr ? "dictionaries" : "strings", "; it can only be an output of a classifier");
  if (item.is_absent) refuse(ErrorCode::unsupported, "value '", name, "': an optional without a value is read");
  if (!item.is_constant()) refuse(ErrorCode::malformed, "value '", name, "' has no content");
  item.value = need(builder.constant(identifier(name), computed(item.tensor, name)));
  return item.value;
}

Value* Scope::result(Item& item, const std::string& name) {
  Value* v = value(item, name);
  const ir::Block* home = v->producer() != nullptr ? v->producer()->parent() : v->block();
  if (home == &builder.block() && v->producer() != nullptr && v->constant() == nullptr) return v;
  return need(builder.op("identity", {{"x", v}}, builder.function().unique_name(identifier(name))));
}

void Scope::add_initializers(const format::onnx::Graph& graph) {
  for (const format::onnx::Tensor& t : graph.initializers) {
    if (t.type == DataType::string) {
      add(t.name, Item{nullptr, Tensor::strings(need(Shape::make(t.dims)), t.strings), t.type});
      continue;
    }
    add(t.name, Item{nullptr, tensor_of(t, context.file), t.type});
  }
  for (const format::onnx::SparseTensor& t : graph.sparse_initializers)
    add(t.values.name, Item{nullptr, tensor_of(t, context.file), t.values.type});
}

void Scope::run(const std::vector<format::onnx::Node>& nodes) {
  constexpr int max_depth = 64;
  if (++context.depth > max_depth) refuse(ErrorCode::malformed, "functions or graphs nest too deeply");
  for (const format::onnx::Node& n : nodes) run(n);
  --context.depth;
}

void Scope::run(const format::onnx::Node& node) {
  const std::string domain = node.domain == "ai.onnx" ? "" : node.domain;
  const auto place = [&] {
    const std::string& name = !node.name.empty() || node.outputs.empty() ? node.name : node.outputs[0];
    const auto opset = opsets.find(domain);
    return cat("node '", name, "' (", domain.empty() ? "" : cat(domain, "."), node.op_type, ", opset ",
               opset != opsets.end() ? opset->second : 0, ")");
  };
  // Nested loops that are written out multiply.
  constexpr int64_t most_nodes = 1'000'000;
  if (++context.nodes > most_nodes)
    refuse(ErrorCode::unsupported, "more than ", most_nodes, " nodes with loops written out");
  try {
    if (call_function(*this, node)) return;
    const auto opset = opsets.find(domain);
    const OperatorImport* found = find_operator(domain, node.op_type);
    if (found == nullptr) refuse(ErrorCode::unsupported, "Core ML has no such operator, and Moka does not compose it");
    Node n(*this, node, opset != opsets.end() ? opset->second : 1);
    found->import(n);
  } catch (Failure& f) {
    throw Failure{std::move(f.error).in(place())};
  }
}

}  // namespace moka::import::onnx
