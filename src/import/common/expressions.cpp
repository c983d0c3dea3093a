// SPDX-License-Identifier: Apache-2.0
#include "import/common/expressions.h"

#include "import/common/constants.h"
#include "ir/evaluate.h"

namespace moka::import {

using ir::DType;
using ir::NamedArg;
using ir::Shape;
using ir::Tensor;
using ir::Value;

std::string Expressions::name(std::string_view o) const { return identifier(cat(base_, "_", o)); }

bool Expressions::fold(ir::Op* op, std::vector<Value*>& out) const {
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
  options.table = &builder_.table();
  options.budget = &budget;
  auto results = ir::evaluate_op(*op, inputs, options);
  if (!results.ok()) return false;  // fails, if ever, when it runs
  for (const ir::RuntimeValue& r : *results)
    if (r.tensor.empty_handle()) return false;
  const std::string base = op->name;
  builder_.block().erase(op);
  for (ir::RuntimeValue& r : *results) out.push_back(need(builder_.constant(base, std::move(r.tensor))));
  return true;
}

std::vector<Value*> Expressions::ops(std::string_view o, std::vector<NamedArg> args) const {
  ir::OpSpec spec{o, std::move(args), name(o), {}, {}};
  ir::Op* op = need(builder_.append(std::move(spec)));
  std::vector<Value*> out;
  if (fold(op, out)) return out;
  for (size_t i = 0; i < op->output_count(); ++i) out.push_back(op->output(i));
  return out;
}

Value* Expressions::op(std::string_view o, std::vector<NamedArg> args) const { return ops(o, std::move(args)).at(0); }

Value* Expressions::constant(Tensor t) const { return need(builder_.constant(name("const"), std::move(t))); }

Value* Expressions::scalar(double v, const Value* like) const {
  return constant(Tensor::scalar(like->type.dtype(), v));
}

NamedArg Expressions::arg(std::string name, double v, const Value* like) const {
  return {std::move(name), Tensor::scalar(like->type.dtype(), v)};
}

Value* Expressions::cast(Value* x, DType type) const {
  if (x->type.dtype() == type) return x;
  Value* v = op("cast", {{"x", x}, {"dtype", std::string(ir::to_string(type))}});
  const auto it = sizes_.find(x);
  if (it != sizes_.end() && type == DType::int32) sizes_[v] = it->second;
  return v;
}

int Expressions::rank(const Value* x) const {
  if (!x->type.is_ranked()) unsupported("an input whose rank is known only when it runs");
  return x->type.rank();
}

const Shape& Expressions::known_shape(const Value* x, std::string_view what) const {
  rank(x);
  if (!x->type.shape().is_concrete())
    unsupported(cat(what, " needs known sizes, got ", x->type, "; give the sizes of the model's inputs"));
  return x->type.shape();
}

int Expressions::axis(int64_t axis, const Value* x) const { return need(ir::normalize_axis(axis, rank(x))); }

std::vector<int64_t> Expressions::axes(std::vector<int64_t> list, const Value* x) const {
  for (int64_t& a : list) a = axis(a, x);
  return list;
}

Value* Expressions::transpose(Value* x, const std::vector<int64_t>& perm) const {
  bool same = true;
  for (size_t i = 0; i < perm.size(); ++i) same &= perm[i] == static_cast<int64_t>(i);
  return same ? x : op("transpose", {{"x", x}, {"perm", Tensor::i32(perm)}});
}

Value* Expressions::reshape(Value* x, const std::vector<int64_t>& dims) const {
  if (x->type.is_ranked() && x->type.shape().to_vector() == dims && x->type.is_concrete()) return x;
  if (dims.empty() && x->type.is_ranked()) {
    if (x->type.rank() == 0) return x;
    std::vector<int64_t> all;
    for (int i = 0; i < x->type.rank(); ++i) all.push_back(i);
    return squeeze(x, all);
  }
  return op("reshape", {{"x", x}, {"shape", Tensor::i32(dims)}});
}

Value* Expressions::expand_dims(Value* x, const std::vector<int64_t>& axes) const {
  return axes.empty() ? x : op("expand_dims", {{"x", x}, {"axes", Tensor::i32(axes)}});
}

Value* Expressions::squeeze(Value* x, const std::vector<int64_t>& axes) const {
  return axes.empty() ? x : op("squeeze", {{"x", x}, {"axes", Tensor::i32(axes)}});
}

Value* Expressions::concat(const std::vector<Value*>& values, int64_t axis) const {
  if (values.size() == 1) return values[0];
  return op("concat", {NamedArg("values", values), {"axis", static_cast<int>(axis)}});
}

Value* Expressions::broadcast(Value* x, const std::vector<int64_t>& dims) const {
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

Value* Expressions::reduce(std::string_view o, Value* x, const std::vector<int64_t>& axes, bool keep) const {
  return op(o, {{"x", x}, {"axes", Tensor::i32(axes)}, {"keep_dims", keep}});
}

Value* Expressions::slice(Value* x, int64_t axis, int64_t begin, int64_t end, int64_t step) const {
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

Value* Expressions::matmul(Value* x, Value* y, bool transpose_x, bool transpose_y) const {
  return op("matmul", {{"x", x}, {"y", y}, {"transpose_x", transpose_x}, {"transpose_y", transpose_y}});
}

}  // namespace moka::import
