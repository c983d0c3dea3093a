// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "ir/permutation.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Removes operations that return their input unchanged, and pairs that undo each other.
namespace moka::passes {

namespace {

using namespace ir;

constexpr int kMaxChain = 16;           ///< most reshapes in a row to look through
constexpr int64_t kMaxElements = 4096;  ///< largest constant to compare with 0 or 1

/// Whether `to` can represent every value of `from`.
bool keeps_all(DType from, DType to) {
  if (from == to) return true;
  struct Range {
    int digits;  ///< bits of integers that it represents exactly
    bool negative;
  };
  const auto range = [](DType t) -> Range {
    switch (t) {
      case DType::boolean: return {1, false};
      case DType::fp16: return {11, true};
      case DType::bf16: return {8, true};
      case DType::fp32: return {24, true};
      case DType::fp64: return {53, true};
      default: return is_integer(t) ? Range{bits(t) - is_signed_integer(t), is_signed_integer(t)} : Range{0, false};
    }
  };
  if (to == DType::boolean) return false;
  if (is_float(from)) return to == DType::fp64 || (to == DType::fp32 && (from == DType::fp16 || from == DType::bf16));
  const Range a = range(from), b = range(to);
  return a.digits > 0 && a.digits <= b.digits && (b.negative || !a.negative);
}

/// Whether casts from `from` over `by`, which represents all of `from`, do the same as one cast. They do not where a
/// number is out of range: integers wrap, and floats saturate.
bool may_skip(DType from, DType by, DType to) {
  return !is_integer(from) || !is_float(by) || !is_integer(to) || keeps_all(from, to);
}

/// Whether two shapes are known to be equal: equal sizes, or the same symbols.
bool same_dim(int64_t a, int64_t b) { return a == b && a != kAnyDim; }

/// Whether two shapes with the same number of elements are certainly equal: all dimensions but one are equal and not 0.
/// An unknown size does not equal a known one, because only the operations in between can tell when that is an error.
bool same_shape(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor() || a.dtype() != b.dtype() || !a.is_ranked() || !b.is_ranked() ||
      a.rank() != b.rank())
    return false;
  int open = 0;
  bool others_hold_elements = true;
  for (int i = 0; i < a.rank(); i++) {
    if (a.shape()[i] < 0 && b.shape()[i] >= 0) return false;
    if (!same_dim(a.shape()[i], b.shape()[i]))
      open++;
    else
      others_hold_elements &= a.shape()[i] > 0;
  }
  return open == 0 || (open == 1 && others_hold_elements);
}

/// Whether the sizes are certainly the same.
bool same_type(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor() || a.dtype() != b.dtype() || !a.is_ranked() || !b.is_ranked() ||
      a.rank() != b.rank())
    return false;
  for (int i = 0; i < a.rank(); i++)
    if (!same_dim(a.shape()[i], b.shape()[i])) return false;
  return true;
}

bool all_equal(const Value* v, double wanted) {
  const Tensor* t = tensor_constant(v);
  if (t == nullptr || t->dtype() == DType::string || t->dtype() == DType::boolean || t->count() > kMaxElements ||
      t->count() == 0)
    return false;
  for (int64_t i = 0; i < t->count(); i++)
    if (load_f64(t->view(), i) != wanted) return false;
  return true;
}

bool all_zero(const std::optional<std::vector<int64_t>>& v) {
  return v && std::all_of(v->begin(), v->end(), [](int64_t x) { return x == 0; });
}

/// Looks back through at most kMaxChain reshapes for a value with the shape of the output.
Value* before_reshapes(Op& op) {
  Value* x = op.input(op.version().params[0].name);
  for (int i = 0; i < kMaxChain && x != nullptr; i++) {
    if (same_shape(x->type, op.output()->type)) return x;
    Op* p = x->producer();
    if (p == nullptr || !p->has_trait(Trait::alias) || !p->epilogue.empty()) return nullptr;
    x = p->input(p->version().params[0].name);
  }
  return nullptr;
}

/// The operand of a commutative operation whose other operand is a constant that holds only `neutral`.
Value* without_neutral(Op& op, double neutral, bool either_side) {
  for (auto [value, other] : {std::array{"x", "y"}, std::array{"y", "x"}}) {
    Value* v = op.input(value);
    if (all_equal(op.input(other), neutral) && same_type(v->type, op.output()->type)) return v;
    if (!either_side) break;
  }
  return nullptr;
}

Value* scalar_neutral(Op& op, std::string_view type) {
  if (type == "add") return without_neutral(op, 0, true);
  if (type == "mul") return without_neutral(op, 1, true);
  if (type == "sub") return without_neutral(op, 0, false);
  if ((type == "real_div" || type == "pow") && is_float(op.output()->type.dtype()))
    return without_neutral(op, 1, false);
  if (type == "linear_activation" && number_of(op, "alpha") == 1.0 && number_of(op, "beta") == 0.0)
    return op.input("x");
  return nullptr;
}

Value* moved_nothing(Op& op, std::string_view type) {
  Value* x = op.input("x");
  if (type == "slice_by_index") {
    if (!same_type(x->type, op.output()->type)) return nullptr;
    if (op.input("stride") == nullptr) return x;
    const auto stride = ints_of(op, "stride");
    return stride && std::all_of(stride->begin(), stride->end(), [](int64_t s) { return s > 0; }) ? x : nullptr;
  }
  if (type == "slice_by_size") return same_type(x->type, op.output()->type) ? x : nullptr;
  if (type == "pad") return all_zero(ints_of(op, "pad")) ? x : nullptr;
  if (type == "tile") return all_equal(op.input("reps"), 1) ? x : nullptr;
  if (type == "concat") {
    const auto values = op.inputs("values");
    return values.size() == 1 && values[0]->type.is_ranked() && values[0]->type.rank() > 0 ? values[0] : nullptr;
  }
  if (type == "split") return op.output_count() == 1 && same_type(x->type, op.output()->type) ? x : nullptr;
  return nullptr;
}

class Remover {
 public:
  explicit Remover(PassContext& c) : c_(c) {}

  void visit(Op& op) {
    if (op.output_count() != 1 || !op.epilogue.empty()) return;
    if (op.has_trait(Trait::constant) || op.has_trait(Trait::stateful)) return;
    if (Value* same = unchanged(op)) {
      std::string removed = cat(op.name, " (", op.type_name(), ")");
      if (replace_and_erase(op, same)) c_.remark(std::move(removed));
    }
  }

 private:
  /// The value that the output of `op` equals, if there is one. May simplify the operation instead.
  Value* unchanged(Op& op) {
    const std::string_view type = op.type_name();
    if (type == "identity") return op.input("x");
    if (op.has_trait(Trait::alias)) return checks_while_running(op) ? nullptr : before_reshapes(op);
    if (!op.output()->type.is_tensor()) return nullptr;
    if (type == "cast") return cast(op);
    if (type == "transpose") return transpose(op);
    if (type == "relu" || type == "relu6" || type == "abs") {
      const Op* p = op.input("x")->producer();
      return p != nullptr && p->type_name() == type && p->epilogue.empty() ? op.input("x") : nullptr;
    }
    if (Value* v = checks_while_running(op) ? nullptr : moved_nothing(op, type)) return v;
    return scalar_neutral(op, type);
  }

  Value* cast(Op& op) {
    Value* x = op.input("x");
    const DType to = op.output()->type.dtype();
    if (x->type.dtype() == to) return x;
    Op* p = x->producer();
    if (p == nullptr || p->type_name() != "cast" || !p->epilogue.empty()) return nullptr;
    Value* source = p->input("x");
    if (!keeps_all(source->type.dtype(), x->type.dtype()) || !may_skip(source->type.dtype(), x->type.dtype(), to))
      return nullptr;
    if (source->type.dtype() == to) return source;
    op.replace_input(x, source);
    c_.remark(cat(p->name, " before ", op.name));
    return nullptr;
  }

  Value* transpose(Op& op) {
    std::optional<Permutation> perm = permutation_of(op);
    if (!perm) return nullptr;
    Op* p = op.input("x")->producer();
    Value* source = op.input("x");
    if (p != nullptr && p->type_name() == "transpose" && p->epilogue.empty()) {
      const std::optional<Permutation> inner = permutation_of(*p);
      if (std::optional<Permutation> both = inner ? composed(*inner, *perm) : std::nullopt) {
        perm = std::move(both);
        source = p->input("x");
      }
    }
    if (is_identity(*perm)) return source;
    if (Value* v = as_reshape(op, *source, *perm)) return v;
    if (source != op.input("x")) {
      op.replace_input(op.input("x"), source);
      op.set_constant("perm", Tensor::i32(*perm));
      c_.remark(cat(p->name, " into ", op.name));
    }
    return nullptr;
  }

  /// Whether a transpose moves only dimensions of size 1, and so no element.
  Value* as_reshape(Op& op, Value& source, const std::vector<int64_t>& perm) {
    const Type& x = source.type;
    if (!x.is_ranked() || x.rank() != static_cast<int>(perm.size())) return nullptr;
    int64_t last = -1;
    int unknown = 0;
    std::vector<int64_t> shape;
    for (int64_t axis : perm) {
      const int64_t size = x.shape()[static_cast<int>(axis)];
      if (size == 0 || (size != 1 && axis < last)) return nullptr;
      if (size != 1) last = axis;
      unknown += size < 0;
      shape.push_back(size < 0 ? -1 : size);
    }
    if (unknown > 1) return nullptr;
    auto made =
        Builder::before(c_.table, op)
            .append({"reshape", {{"x", &source}, {"shape", Tensor::i32(shape)}}, op.name, {}, {op.output()->type}});
    if (!made) return nullptr;
    Value* v = (*made)->output();
    Value* before = before_reshapes(**made);
    if (before == nullptr) take_name(*v, *op.output());
    return before != nullptr ? before : v;
  }

  PassContext& c_;
};

Status remove_identities(PassContext& c) {
  Remover remover(c);
  for_each_op(c.function.body(), [&](Op& op) { remover.visit(op); });
  return {};
}

}  // namespace

Pass pass_remove_identities() { return {"remove_identities", remove_identities}; }

}  // namespace moka::passes
