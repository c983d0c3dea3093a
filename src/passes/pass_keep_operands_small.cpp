// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "ir/fixed.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Keeps the small operand of an elementwise operation small: drops a tile that the operation repeats by itself, and
/// multiplies the small factor of a product by a number instead of the whole product. PyTorch's converter writes
/// `expand_as` as a tile, for example in gates of channels.
namespace moka::passes {

namespace {

using namespace ir;

constexpr double kMostFactor = 1024;  ///< largest number, and its inverse the smallest, that moves
constexpr int64_t kSmaller = 4;       ///< times that a product must be larger than its factor

bool has_sizes(const Value* v) { return v != nullptr && v->type.is_tensor() && v->type.is_concrete(); }

/// The value that `tiled` repeats, if broadcasting it against `other` repeats it in the same way.
Value* before_tile(const Value& tiled, const Value& other) {
  const Op* tile = made_by(&tiled, "tile");
  if (tile == nullptr || &tiled == &other || checks_while_running(*tile)) return nullptr;
  Value* x = tile->input("x");
  if (!has_sizes(x) || !has_sizes(&tiled) || !has_sizes(&other)) return nullptr;
  const Shape &from = x->type.shape(), &to = tiled.type.shape(), &beside = other.type.shape();
  const int more = beside.rank() - to.rank();
  for (int i = 0; i < to.rank(); i++)
    if (from[i] != to[i] && (from[i] != 1 || i + more < 0 || beside[i + more] != to[i])) return nullptr;
  return x;
}

class Keeper {
 public:
  explicit Keeper(PassContext& c) : c_(c) {}

  Status visit(Op& op) {
    if (!op.has_trait(Trait::elementwise) || op.output_count() != 1 || !op.epilogue.empty()) return {};
    if (op.version().param_index("x") < 0 || op.version().param_index("y") < 0) return {};
    for (auto [a, b] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
      Value *tiled = op.input(a), *other = op.input(b);
      if (tiled == nullptr || other == nullptr) return {};
      Value* x = before_tile(*tiled, *other);
      if (x == nullptr || x->is_inline_constant()) continue;
      c_.remark(cat(tiled->producer()->name, " into ", op.name));
      op.replace_input(tiled, x);
    }
    return op.type_name() == "mul" ? move_number(op) : Status{};
  }

 private:
  /// (x * small) * number becomes x * (small * number).
  Status move_number(Op& op) {
    const Type& type = op.output()->type;
    if (!has_sizes(op.output()) || (type.dtype() != DType::fp32 && type.dtype() != DType::fp64)) return {};
    for (auto [a, b] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
      Value* product = op.input(a);
      const Op* inner = made_by(product, "mul");
      const auto number = number_of(op, b);
      if (inner == nullptr || !number || !has_one_use(*product) || !(product->type == type)) continue;
      const double size = std::fabs(*number);
      if (!(size == 0 || (size <= kMostFactor && size >= 1 / kMostFactor))) continue;
      for (auto [large, small] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
        Value *x = inner->input(large), *factor = inner->input(small);
        if (!has_sizes(x) || !has_sizes(factor) || factor->constant() != nullptr || is_from_parameter(*factor))
          continue;
        if (!(x->type == type) || factor->type.shape().count() * kSmaller > type.shape().count()) continue;
        return multiply(op, *inner, given("x", x), given("x", factor), given("y", op.input(b)));
      }
    }
    return {};
  }

  Status multiply(Op& op, const Op& inner, NamedArg x, NamedArg factor, NamedArg number) {
    Builder before = Builder::before(c_.table, op);
    Value* scaled = MOKA_TRY(before.op("mul", {std::move(factor), std::move(number)}, inner.name));
    Value* y = MOKA_TRY(before.op("mul", {std::move(x), {"y", scaled}}, op.name));
    c_.remark(cat(op.name, " before ", inner.name));
    take_name(*y, *op.output());
    replace_and_erase(op, y);
    return {};
  }

  PassContext& c_;
};

Status keep_operands_small(PassContext& c) {
  Keeper keeper(c);
  return try_each_op(c.function.body(), [&](Op& op) { return keeper.visit(op); });
}

}  // namespace

Pass pass_keep_operands_small() { return {"keep_operands_small", keep_operands_small}; }

}  // namespace moka::passes
