// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/node.h"

#include <algorithm>

namespace moka::import::onnx {

bool is_float(DataType type) {
  return type == DataType::float32 || type == DataType::float16 || type == DataType::float64 ||
         type == DataType::bfloat16;
}

Value* numbers(const Node& n, Value* x) { return x->type.dtype() == DType::boolean ? n.cast(x, DType::int32) : x; }

namespace {

/// What the names of the node's operations begin with.
std::string base_of(const format::onnx::Node& message) {
  const std::string& base = !message.name.empty() || message.outputs.empty() ? message.name : message.outputs[0];
  return base.empty() ? message.op_type : base;
}

}  // namespace

Node::Node(Scope& scope, const format::onnx::Node& message, int64_t opset)
    : Expressions(scope.builder, scope.context.sizes, base_of(message)), scope(scope), message(message), opset(opset) {}

Item& Node::item(size_t i) const {
  if (!has(i)) malformed(cat("input ", i, " is missing"));
  return scope.own(message.inputs[i]);
}

Value* Node::in(size_t i) const {
  Item& own = item(i);  // refuses an input that is missing
  return scope.value(own, message.inputs[i]);
}

const Tensor* Node::constant(size_t i) const {
  if (!has(i)) return nullptr;
  const Item& it = item(i);
  if (it.is_constant()) return &it.tensor;
  return it.value != nullptr ? constant_of(it.value) : nullptr;
}

void Node::computed_parameter(size_t i, std::string_view what) const {
  unsupported(cat(what, " (input '", message.inputs[i], "'): expected a constant, got a computed value"));
}

std::vector<int64_t> Node::integers(size_t i, std::string_view what) const {
  const Tensor* t = constant(i);
  if (t == nullptr) computed_parameter(i, what);
  return integers_of(*t);
}

double Node::number(size_t i, std::string_view what) const {
  const Tensor* t = constant(i);
  if (t == nullptr) computed_parameter(i, what);
  if (t->count() != 1 || t->dtype() == DType::string) malformed(cat(what, " (input ", i, "): expected one number"));
  return ir::load_f64(t->view(), 0);
}

int64_t Node::integer(size_t i, std::string_view what) const {
  const Tensor* t = constant(i);
  if (t == nullptr) computed_parameter(i, what);
  if (t->count() != 1 || t->dtype() == DType::string) malformed(cat(what, " (input ", i, "): expected one number"));
  return integers_of(*t)[0];
}

const Attribute* Node::attribute(std::string_view name) const {
  for (const Attribute& a : message.attributes) {
    if (a.name != name) continue;
    if (a.reference.empty()) return &a;
    if (scope.attributes == nullptr) return nullptr;
    const auto it = scope.attributes->find(a.reference);
    return it != scope.attributes->end() ? &it->second : nullptr;
  }
  return nullptr;
}

int64_t Node::integer_or(std::string_view name, int64_t otherwise) const {
  const Attribute* a = attribute(name);
  return a != nullptr ? a->integer : otherwise;
}

float Node::number_or(std::string_view name, float otherwise) const {
  const Attribute* a = attribute(name);
  return a != nullptr ? a->number : otherwise;
}

std::string Node::text_or(std::string_view name, std::string_view otherwise) const {
  const Attribute* a = attribute(name);
  return a != nullptr ? a->string : std::string(otherwise);
}

std::vector<int64_t> Node::integers_or(std::string_view name, std::vector<int64_t> otherwise) const {
  const Attribute* a = attribute(name);
  return a != nullptr ? a->integers : otherwise;
}

std::vector<float> Node::numbers_or(std::string_view name, std::vector<float> otherwise) const {
  const Attribute* a = attribute(name);
  return a != nullptr ? a->numbers : otherwise;
}

std::optional<std::vector<int64_t>> Node::integers_either(std::string_view name, size_t i) const {
  if (has(i)) return integers(i, name);
  if (const Attribute* a = attribute(name)) return a->integers;
  return std::nullopt;
}

void Node::set(size_t i, Value* v, DataType type) {
  if (!wants(i)) return;
  const std::string& wanted = message.outputs[i];
  ir::Op* made = v->producer();
  const bool own = made != nullptr && made->parent() == &scope.builder.block() && v->constant() == nullptr &&
                   v->name.starts_with(name(made->type_name()));
  if (own) v->name = scope.builder.function().unique_name(identifier(wanted));
  scope.add(wanted, Item{v, {}, type});
}

void Node::set_label(size_t i, std::shared_ptr<const Labels> labels, Value* v) {
  if (!wants(i)) return;
  const DataType type = labels->list.dtype() == DType::string ? DataType::string : DataType::int64;
  if (v != nullptr) set(i, v, type);
  Item item = v != nullptr ? scope.own(message.outputs[i]) : Item{nullptr, {}, type};
  item.labels = std::move(labels);
  scope.add(message.outputs[i], std::move(item));
}

}  // namespace moka::import::onnx
