#include "import/onnx/node.h"

#include <algorithm>

#include "ir/evaluate.h"

namespace moka::import::onnx {

bool is_float(DataType type) {
  return type == DataType::float32 || type == DataType::float16 || type == DataType::float64 ||
         type == DataType::bfloat16;
}

Value* numbers(const Node& n, Value* x) { return x->type.dtype() == DType::boolean ? n.cast(x, DType::int32) : x; }

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

std::string Node::name(std::string_view o) const {
  const std::string& base = !message.name.empty() || message.outputs.empty() ? message.name : message.outputs[0];
  return identifier(base.empty() ? cat(message.op_type, "_", o) : cat(base, "_", o));
}

bool Node::fold(ir::Op* op, std::vector<Value*>& out) const {
  constexpr size_t most = size_t{64} << 20;  // bytes of the operands and of the result
  for (const ir::Trait t :
       {ir::Trait::constant, ir::Trait::constexpr_weight, ir::Trait::random, ir::Trait::stateful, ir::Trait::control})
    if (op->has_trait(t)) return false;
  if (!op->version().reference) return false;
  size_t total = 0;
  std::vector<ir::RuntimeValue> inputs;
  for (const ir::Operand& o : op->operands())
    for (const Value* v : o.values) {
      const Tensor* t = constant_of(v);
      if (t == nullptr || (total += t->bytes()) > most) return false;
      inputs.emplace_back(*t);
    }
  for (size_t i = 0; i < op->output_count(); ++i) {
    const ir::Type& t = op->output(i)->type;
    if (!t.is_tensor()) return false;
    if (!t.is_concrete()) continue;
    const auto bytes = ir::storage_bytes(t.dtype(), t.shape());
    if (!bytes.ok() || (total += *bytes) > most) return false;
  }
  MemoryBudget budget(most);
  ir::EvaluateOptions options;
  options.table = &scope.builder.table();
  options.budget = &budget;
  auto results = ir::evaluate_op(*op, inputs, options);
  if (!results.ok()) return false;  // fails, if ever, when it runs
  for (const ir::RuntimeValue& r : *results)
    if (r.tensor.empty_handle()) return false;
  const std::string base = op->name;
  scope.builder.block().erase(op);
  for (ir::RuntimeValue& r : *results) out.push_back(need(scope.builder.constant(base, std::move(r.tensor))));
  return true;
}

std::vector<Value*> Node::ops(std::string_view o, std::vector<NamedArg> args) const {
  ir::OpSpec spec{o, std::move(args), name(o), {}, {}};
  ir::Op* op = need(scope.builder.append(std::move(spec)));
  std::vector<Value*> out;
  if (fold(op, out)) return out;
  for (size_t i = 0; i < op->output_count(); ++i) out.push_back(op->output(i));
  return out;
}

Value* Node::op(std::string_view o, std::vector<NamedArg> args) const { return ops(o, std::move(args)).at(0); }

Value* Node::constant(Tensor t) const { return need(scope.builder.constant(name("const"), std::move(t))); }

Value* Node::scalar(double v, const Value* like) const { return constant(Tensor::scalar(like->type.dtype(), v)); }

NamedArg Node::arg(std::string name, double v, const Value* like) const {
  return {std::move(name), Tensor::scalar(like->type.dtype(), v)};
}

Value* Node::cast(Value* x, DType type) const {
  if (x->type.dtype() == type) return x;
  Value* v = op("cast", {{"x", x}, {"dtype", std::string(ir::to_string(type))}});
  const auto it = scope.context.sizes.find(x);
  if (it != scope.context.sizes.end() && type == DType::int32) scope.context.sizes[v] = it->second;
  return v;
}

int Node::rank(const Value* x) const {
  if (!x->type.is_ranked()) unsupported("an input whose rank is known only when it runs");
  return x->type.rank();
}

const Shape& Node::known_shape(const Value* x, std::string_view what) const {
  rank(x);
  if (!x->type.shape().is_concrete())
    unsupported(cat(what, " needs known sizes, got ", x->type, "; give the sizes of the model's inputs"));
  return x->type.shape();
}

int Node::axis(int64_t axis, const Value* x) const { return need(ir::normalize_axis(axis, rank(x))); }

std::vector<int64_t> Node::axes(std::vector<int64_t> list, const Value* x) const {
  for (int64_t& a : list) a = axis(a, x);
  return list;
}

Value* Node::transpose(Value* x, const std::vector<int64_t>& perm) const {
  bool same = true;
  for (size_t i = 0; i < perm.size(); ++i) same &= perm[i] == static_cast<int64_t>(i);
  return same ? x : op("transpose", {{"x", x}, {"perm", Tensor::i32(perm)}});
}

Value* Node::reshape(Value* x, const std::vector<int64_t>& dims) const {
  if (x->type.is_ranked() && x->type.shape().to_vector() == dims && x->type.is_concrete()) return x;
  if (dims.empty() && x->type.is_ranked()) {
    if (x->type.rank() == 0) return x;
    std::vector<int64_t> all;
    for (int i = 0; i < x->type.rank(); ++i) all.push_back(i);
    return squeeze(x, all);
  }
  return op("reshape", {{"x", x}, {"shape", Tensor::i32(dims)}});
}

Value* Node::expand_dims(Value* x, const std::vector<int64_t>& axes) const {
  return axes.empty() ? x : op("expand_dims", {{"x", x}, {"axes", Tensor::i32(axes)}});
}

Value* Node::squeeze(Value* x, const std::vector<int64_t>& axes) const {
  return axes.empty() ? x : op("squeeze", {{"x", x}, {"axes", Tensor::i32(axes)}});
}

Value* Node::concat(const std::vector<Value*>& values, int64_t axis) const {
  if (values.size() == 1) return values[0];
  return op("concat", {NamedArg("values", values), {"axis", static_cast<int>(axis)}});
}

Value* Node::broadcast(Value* x, const std::vector<int64_t>& dims) const {
  if (x->type.is_concrete() && x->type.shape().to_vector() == dims) return x;
  if (rank(x) < static_cast<int>(dims.size())) {
    std::vector<int64_t> lead;
    for (size_t i = 0; i + static_cast<size_t>(rank(x)) < dims.size(); ++i) lead.push_back(static_cast<int64_t>(i));
    x = expand_dims(x, lead);
  }
  std::vector<int64_t> reps;
  for (size_t i = 0; i < dims.size(); ++i)
    reps.push_back(x->type.shape()[static_cast<int>(i)] == dims[i] ? 1 : dims[i]);
  return op("tile", {{"x", x}, {"reps", Tensor::i32(reps)}});
}

Value* Node::reduce(std::string_view o, Value* x, const std::vector<int64_t>& axes, bool keep) const {
  return op(o, {{"x", x}, {"axes", Tensor::i32(axes)}, {"keep_dims", keep}});
}

Value* Node::slice(Value* x, int64_t axis, int64_t begin, int64_t end, int64_t step) const {
  const auto n = static_cast<size_t>(rank(x));
  std::vector<int64_t> begins(n, 0), ends(n, 0), steps(n, 1);
  Tensor begin_mask = need(Tensor::zeros(DType::boolean, {rank(x)}));
  Tensor end_mask = need(Tensor::zeros(DType::boolean, {rank(x)}));
  for (size_t i = 0; i < n; ++i)
    begin_mask.mut<uint8_t>()[i] = end_mask.mut<uint8_t>()[i] = static_cast<int64_t>(i) != axis;
  begins[static_cast<size_t>(axis)] = begin;
  ends[static_cast<size_t>(axis)] = end;
  steps[static_cast<size_t>(axis)] = step;
  return op("slice_by_index", {{"x", x},
                               {"begin", Tensor::i32(begins)},
                               {"end", Tensor::i32(ends)},
                               {"stride", Tensor::i32(steps)},
                               {"begin_mask", begin_mask},
                               {"end_mask", end_mask}});
}

Value* Node::matmul(Value* x, Value* y, bool transpose_x, bool transpose_y) const {
  return op("matmul", {{"x", x}, {"y", y}, {"transpose_x", transpose_x}, {"transpose_y", transpose_y}});
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
