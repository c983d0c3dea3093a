// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <unordered_map>
#include <unordered_set>

#include "base/half.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Computes and keeps float16 values in float32, because types are only the minimum precision of a computation. Inputs
/// and outputs of the function become float32, too (the caller converts them), but states keep their type. Small
/// constants are converted. Larger ones and compressed weights get a `constexpr_cast` after them, so they stay small
/// until a kernel reads them. Casts to float16 are dropped, even though a program may use them to round.
namespace moka::passes {

namespace {

using namespace ir;

constexpr int64_t kConvertInPlace = 1024;  ///< most elements of a constant that is converted

bool is_half(const Type& t) { return t.is_tensor() && t.dtype() == DType::fp16; }

Type widen(const Type& t) {
  if (is_half(t)) return t.is_ranked() ? Type::tensor(DType::fp32, t.shape()) : Type::unranked(DType::fp32);
  if (t.is_list()) return Type::list(widen(t.element()), t.length());
  return t;
}

class Widener {
 public:
  explicit Widener(PassContext& c) : c_(c) {}

  Status run() {
    Block& body = c_.function.body();
    widen_inputs(body);
    MOKA_TRY(block(body));
    if (widened_ > 0) c_.remark(cat(widened_, widened_ == 1 ? " value" : " values", " in float32"));
    return {};
  }

 private:
  void retype(Value& v) {
    const Type t = widen(v.type);
    if (t == v.type) return;
    v.half = is_half(v.type);
    v.type = t;
    was_half_.insert(&v);
    widened_++;
  }

  void widen_inputs(Block& b) {
    for (const auto& v : b.inputs()) retype(*v);
  }

  Status block(Block& b) {
    for (auto it = b.ops().begin(); it != b.ops().end();) {
      Op& op = **it++;
      Builder after = it == b.ops().end() ? Builder(c_.table, b) : Builder::before(c_.table, **it);
      MOKA_TRY(operation(op, after));
    }
    const std::vector<Value*> outputs(b.outputs().begin(), b.outputs().end());
    for (Value* v : outputs)
      if (auto twin = twins_.find(v); twin != twins_.end()) b.replace_output(v, twin->second);
    return {};
  }

  /// A constant in float32.
  Status widen_constant(Value& v, Builder& after) {
    const Constant& constant = *v.constant();
    if (constant.tensor.count() <= kConvertInPlace) {
      twins_[&v] = MOKA_TRY(after.constant(cat(v.name, "_fp32"), MOKA_TRY(converted(constant.tensor))));
      return {};
    }
    return expand_later(v, after);
  }

  Result<Tensor> converted(const Tensor& half) {
    Tensor t = MOKA_TRY(Tensor::zeros(DType::fp32, half.shape()));
    half_to_float(static_cast<const uint16_t*>(half.data()), t.mut<float>().data(), static_cast<size_t>(half.count()));
    return t;
  }

  Status expand_later(Value& v, Builder& after) {
    after.opset = Opset::ios18;
    twins_[&v] =
        MOKA_TRY(after.op("constexpr_cast", {{"source_val", &v}, {"output_dtype", "fp32"}}, cat(v.name, "_fp32")));
    return {};
  }

  Result<Value*> cast_to(Builder& b, Value& v, const char* dtype) {
    return b.op("cast", {{"x", &v}, {"dtype", dtype}}, cat(v.name, "_", dtype));
  }

  /// Whether an operation depends on the rounding of float16, or does not accept float32.
  static bool stays_half(const Op& op) {
    // range_1d computes its number of elements in the element type. random_uniform leaves out what rounds to high.
    if (op.has_trait(Trait::stateful) || op.type_name() == "range_1d" || op.type_name() == "random_uniform")
      return true;
    // A product of integers and float16 constants has integer results.
    for (const char* param : {"x", "y"})
      if (const Value* v = op.input(param); v != nullptr && op.output_count() == 1 && op.output()->type.is_tensor() &&
                                            v->type.is_tensor() && is_integer(v->type.dtype()) &&
                                            op.output()->type.dtype() == v->type.dtype())
        return true;
    // A float32 value that is cast only to be written to a state was never float16 otherwise.
    if (op.type_name() == "cast" && is_half(op.output()->type))
      for (const Op* user : op.output()->users())
        if (user->has_trait(Trait::stateful)) return true;
    for (const Operand& o : op.operands()) {
      const ParamDef& p = op.version().params[static_cast<size_t>(o.param)];
      for (const Value* v : o.values)
        if (v->type.is_tensor() && (is_half(v->type) || v->type.dtype() == DType::fp32) &&
            (op.version().domain(p) & only(DType::fp32)) == 0)
          return true;
    }
    return false;
  }

  Status operation(Op& op, Builder& after) {
    if (op.has_trait(Trait::constant))
      return is_half(op.output()->type) ? widen_constant(*op.output(), after) : Status{};
    if (op.has_trait(Trait::constexpr_weight) || op.has_trait(Trait::parameter)) {
      for (size_t i = 0; i < op.output_count(); i++)
        if (is_half(op.output(i)->type)) MOKA_TRY(expand_later(*op.output(i), after));
      return {};
    }
    if (stays_half(op)) {
      MOKA_TRY(narrow_operands(op));
    } else {
      if (op.type_name() == "mul") MOKA_TRY(limit_factors(op));
      const bool rounds = op.has_trait(Trait::elementwise) && reads_half(op);
      MOKA_TRY(widen_operands(op));
      MOKA_TRY(widen_names(op));
      if (rounds) round_defaults(op);
    }
    for (size_t i = 0; i < op.block_count(); i++) {
      widen_inputs(*op.block(i));
      MOKA_TRY(block(*op.block(i)));
    }
    if (op.type_name() == "cast" && op.input("x")->type.dtype() == DType::fp32 && text_of(op, "dtype") == "fp32" &&
        replace_and_erase(op, op.input("x")))
      return {};
    return results(op, after);
  }

  Status narrow_operands(Op& op) {
    std::vector<Value*> wide;
    for (const Operand& o : op.operands())
      for (Value* v : o.values) {
        if (v->type.is_state() && !is_half(v->type.element(0))) return {};
        if (was_half_.contains(v) && v->type.is_tensor()) wide.push_back(v);
      }
    for (Value* v : wide) {
      Builder before = Builder::before(c_.table, op);
      op.replace_input(v, MOKA_TRY(cast_to(before, *v, "fp16")));
    }
    return {};
  }

  Status widen_operands(Op& op) {
    struct Change {
      int param;
      Value* from;
      bool tuple;
    };
    std::vector<Change> changes;
    for (const Operand& o : op.operands())
      for (Value* v : o.values)
        if (twins_.contains(v) || (v->is_inline_constant() && is_half(v->type)))
          changes.push_back({o.param, v, o.tuple});
    for (const Change& ch : changes) {
      if (auto twin = twins_.find(ch.from); twin != twins_.end()) {
        op.replace_input(ch.from, twin->second);
        continue;
      }
      const std::string& param = op.version().params[static_cast<size_t>(ch.param)].name;
      const Tensor& half = ch.from->constant()->tensor;
      Builder before = Builder::before(c_.table, op);
      if (half.count() > kConvertInPlace) {
        Value* kept = MOKA_TRY(before.constant(cat(op.name, "_", param), *ch.from->constant()));
        MOKA_TRY(expand_later(*kept, before));
        op.replace_input(ch.from, twins_.at(kept));
      } else if (ch.tuple) {
        op.replace_input(ch.from, MOKA_TRY(before.constant(cat(op.name, "_", param), MOKA_TRY(converted(half)))));
      } else {
        op.set_constant(param, MOKA_TRY(converted(half)));
      }
    }
    return {};
  }

  /// Masks are products with a large number, which may have become infinite when it was stored as float16. 0 times it
  /// must be 0.
  Status limit_factors(Op& op) {
    for (const char* param : {"x", "y"}) {
      const Tensor* t = tensor_constant(op.input(param));
      if (t == nullptr || t->dtype() != DType::fp16 || t->count() > kConvertInPlace) continue;
      Tensor wide = MOKA_TRY(converted(*t));
      const auto values = wide.mut<float>();
      if (std::none_of(values.begin(), values.end(), [](float v) { return std::isinf(v); })) continue;
      for (float& v : values)
        if (std::isinf(v)) v = std::copysign(std::numeric_limits<float>::max(), v);
      c_.change(cat("operation '", op.name, "' (mul) computes with 3.4e38, the largest float32, where its ", param,
                    " is infinite, so that 0 times it is 0 and not NaN"));
      op.set_constant(param, std::move(wide));
    }
    return {};
  }

  bool reads_half(const Op& op) const {
    Value* x = op.input("x");
    return x != nullptr && (was_half_.contains(x) || is_half(x->type));
  }

  /// Defaults of elementwise functions have the type of x: an epsilon of 1e-45 is 0 in float16.
  static void round_defaults(Op& op) {
    for (const ParamDef& p : op.version().params) {
      if (op.input(p.name) != nullptr || !p.has_default() || !p.default_value.type.is_tensor()) continue;
      if (p.default_value.type.dtype() != DType::fp32 || p.default_view.count() != 1) continue;
      const double given = load_f64(p.default_view, 0), rounded = static_cast<double>(static_cast<float>(half(given)));
      if (rounded != given) op.set_constant(p.name, Tensor::scalar(DType::fp32, rounded));
    }
  }

  /// The parameters that name an element type.
  Status widen_names(Op& op) {
    std::vector<std::string> names;
    for (const Operand& o : op.operands()) {
      const std::string& name = op.version().params[static_cast<size_t>(o.param)].name;
      if (name.ends_with("dtype") && text_of(op, name) == "fp16") names.push_back(name);
    }
    for (const std::string& name : names) op.set_constant(name, Tensor::text("fp32"));
    return {};
  }

  Status results(Op& op, Builder& after) {
    if (!op.version().infer) return {};
    StaticCall call(op);
    const auto types = MOKA_TRY_IN(op.version().infer(call.call()),
                                   cat("operation '", op.name, "' (", op.type_name(), ") in float32"));
    if (types.size() != op.output_count())
      return fail(ErrorCode::internal, "operation '", op.name, "' changed its number of outputs");
    for (size_t i = 0; i < types.size(); i++) {
      Value& v = *op.output(i);
      if (is_compatible(types[i], widen(v.type))) {
        retype(v);
      } else if (is_half(v.type) && is_compatible(types[i], v.type)) {
        twins_[&v] = MOKA_TRY(cast_to(after, v, "fp32"));
      } else {
        v.type = types[i];
      }
    }
    return {};
  }

  PassContext& c_;
  std::unordered_map<Value*, Value*> twins_;  ///< float32 versions of values that stay float16
  std::unordered_set<const Value*> was_half_;
  int widened_ = 0;
};

Status widen_float16(PassContext& c) { return Widener(c).run(); }

}  // namespace

Pass pass_widen_float16() { return {"widen_float16", widen_float16}; }

}  // namespace moka::passes
