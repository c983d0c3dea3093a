// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite.h"

#include <unordered_map>
#include <utility>

#include "ir/evaluate.h"

namespace moka::passes {

using namespace ir;

bool replace_and_erase(Op& op, Value* with) {
  if (with->is_inline_constant()) return false;
  Function::replace_all_uses(op.output(), with);
  op.parent()->erase(&op);
  return true;
}

void take_name(Value& to, Value& from) { std::swap(to.name, from.name); }

bool has_one_use(const Value& v) {
  return v.users().size() == 1 && v.returned_by().empty() && v.producer() != nullptr &&
         v.producer()->parent() == v.users()[0]->parent();
}

const Tensor* tensor_constant(const Value* v) {
  if (v == nullptr || v->constant() == nullptr || v->constant()->tensor.empty_handle()) return nullptr;
  return &v->constant()->tensor;
}

namespace {
std::optional<TensorView> known(const Op& op, std::string_view param) {
  const ParamDef* p = op.version().param(param);
  if (p == nullptr) return std::nullopt;
  const Value* v = op.input(param);
  if (v == nullptr) return p->has_default() ? std::optional(p->default_view) : std::nullopt;
  const Tensor* t = tensor_constant(v);
  return t == nullptr ? std::nullopt : std::optional(t->view());
}
}  // namespace

std::optional<double> number_of(const Op& op, std::string_view param) {
  const auto v = known(op, param);
  if (!v || v->count() != 1 || v->dtype == DType::string) return std::nullopt;
  return load_f64(*v, 0);
}

std::optional<std::vector<int64_t>> ints_of(const Op& op, std::string_view param) {
  const Tensor* t = tensor_constant(op.input(param));
  if (t == nullptr || (!is_integer(t->dtype()) && t->dtype() != DType::boolean) || t->count() > 4096)
    return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t i = 0; i < t->count(); i++) out.push_back(load_i64(t->view(), i));
  return out;
}

std::string_view text_of(const Op& op, std::string_view param) {
  const auto v = known(op, param);
  if (!v || v->dtype != DType::string || v->count() != 1) return {};
  return *v->as<std::string>();
}

namespace {
constexpr int kMaxDepth = 32;

/// `shared`: results that may be needed again.
std::optional<Tensor> value_within(const Value& v, size_t max_bytes, int depth,
                                   std::unordered_map<const Value*, Tensor>& shared) {
  if (const auto it = shared.find(&v); it != shared.end()) return it->second;
  if (v.constant() != nullptr) {
    const Tensor* t = tensor_constant(&v);
    return t == nullptr || t->bytes() > max_bytes ? std::nullopt : std::optional(*t);
  }
  const Op* op = v.producer();
  if (op == nullptr || depth == 0 || !op->version().reference || op->has_trait(Trait::random) ||
      op->has_trait(Trait::stateful) || op->has_trait(Trait::parameter) || !op->epilogue.empty())
    return std::nullopt;
  // This depends only on types.
  for (const Operand& o : op->operands())
    for (const Value* in : o.values)
      if (in->constant() == nullptr && (in->producer() == nullptr || !in->type.is_concrete())) return std::nullopt;
  std::vector<RuntimeValue> inputs;
  for (const Operand& o : op->operands())
    for (const Value* in : o.values) {
      auto t = value_within(*in, max_bytes, depth - 1, shared);
      if (!t) return std::nullopt;
      inputs.emplace_back(std::move(*t));
    }
  MemoryBudget budget(max_bytes);
  EvaluateOptions options;
  options.budget = &budget;
  auto out = evaluate_op(*op, inputs, options);
  if (!out || static_cast<size_t>(v.index()) >= out->size()) return std::nullopt;
  const Tensor& t = (*out)[static_cast<size_t>(v.index())].tensor;
  if (t.empty_handle()) return std::nullopt;
  if (out->size() > 1 || v.users().size() > 1)
    for (size_t i = 0; i < out->size(); i++)
      if (!(*out)[i].tensor.empty_handle()) shared.emplace(op->output(i), (*out)[i].tensor);
  return t;
}
}  // namespace

std::optional<Tensor> constant_value(const Value& v, size_t max_bytes) {
  std::unordered_map<const Value*, Tensor> shared;
  return value_within(v, max_bytes, kMaxDepth, shared);
}

NamedArg given(std::string param, Value* v) {
  return v->is_inline_constant() ? NamedArg(std::move(param), *v->constant()) : NamedArg(std::move(param), v);
}

std::vector<double> as_doubles(const Tensor& t) {
  std::vector<double> out(static_cast<size_t>(t.count()));
  const TensorView view = t.view();
  if (t.dtype() == DType::fp32) {
    auto from = t.as<float>();
    out.assign(from.begin(), from.end());
  } else {
    for (size_t i = 0; i < out.size(); i++) out[i] = load_f64(view, static_cast<int64_t>(i));
  }
  return out;
}

Result<bool> refresh_types(Op& op) {
  if (!op.version().infer || op.has_trait(Trait::constant)) return false;
  StaticCall call(op);
  const std::vector<Type> types =
      MOKA_TRY_IN(op.version().infer(call.call()), cat("operation '", op.name, "' (", op.type_name(), ")"));
  if (types.size() != op.output_count())
    return fail(ErrorCode::internal, "operation '", op.name, "' changed its number of outputs");
  bool changed = false;
  for (size_t i = 0; i < types.size(); i++) {
    Type& t = op.output(i)->type;
    if (t == types[i]) continue;
    if (!is_compatible(types[i], t)) {
      t = types[i];
      changed = true;
      continue;
    }
    if (!t.is_tensor() || !types[i].is_ranked()) continue;
    if (!t.is_ranked()) {
      t = types[i];
      changed = true;
      continue;
    }
    for (int d = 0; d < t.rank(); d++)
      if (t.shape()[d] < 0 && types[i].shape()[d] >= 0) {
        t.shape()[d] = types[i].shape()[d];
        changed = true;
      }
  }
  return changed;
}

const Op* made_by(const Value* v, std::string_view type) {
  const Op* op = v == nullptr ? nullptr : v->producer();
  return op != nullptr && op->type_name() == type && op->epilogue.empty() ? op : nullptr;
}

bool checks_while_running(const Op& op) {
  for (const Operand& o : op.operands())
    for (const Value* v : o.values)
      if (o.param != 0 && v->constant() == nullptr) return true;
  return false;
}

Result<Tensor> rounded(const std::vector<double>& v, DType dtype, const Shape& shape) {
  Tensor t = MOKA_TRY(Tensor::zeros(dtype, shape));
  if (dtype == DType::fp32) {
    std::transform(v.begin(), v.end(), t.mut<float>().begin(), [](double x) { return static_cast<float>(x); });
  } else {
    for (size_t i = 0; i < v.size(); i++) store_f64(t.view(), static_cast<int64_t>(i), v[i]);
  }
  return t;
}

bool may_expand(const Value& weight, size_t max_bytes) {
  constexpr size_t kMostCompressed = size_t{1} << 20;
  const auto bytes = storage_bytes(DType::fp32, weight.type.shape());
  if (!bytes || *bytes > max_bytes) return false;
  const Value* v = &weight;
  for (int depth = 0; v->constant() == nullptr && depth < 8; depth++) {
    const Op* p = v->producer();
    if (p == nullptr) return false;
    if (p->has_trait(Trait::constexpr_weight) && p->type_name() != "constexpr_cast") return *bytes <= kMostCompressed;
    if (p->operands().empty()) return false;
    v = p->operands()[0].values[0];
  }
  return v->constant() != nullptr;
}

}  // namespace moka::passes
