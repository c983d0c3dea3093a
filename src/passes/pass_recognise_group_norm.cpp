// SPDX-License-Identifier: Apache-2.0
#include "passes/norm_scale.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Recognizes group norms, which converters write as means of [N, groups, channels of a group, ...] between two
/// reshapes. They become one operation on [N, C, ...], which can work on blocked layouts.
namespace moka::passes {

namespace {

using namespace ir;

/// Whether `op` is the mean over all but the first two dimensions, with reduced dimensions kept.
const Op* mean_of_groups(const Value* v) {
  const Op* op = made_by(v, "reduce_mean");
  if (op == nullptr || number_of(*op, "keep_dims") != 1.0 || !op->input("x")->type.is_ranked()) return nullptr;
  const int rank = op->input("x")->type.rank();
  const auto axes = ints_of(*op, "axes");
  if (!axes || static_cast<int>(axes->size()) != rank - 2) return nullptr;
  uint32_t seen = 0;
  for (int64_t a : *axes) seen |= 1u << (a < 0 ? a + rank : a);
  return seen == ((1u << rank) - 1) - 3 ? op : nullptr;
}

bool is_shaped(const Op* op) {
  return op != nullptr && op->has_trait(Trait::alias) && op->epilogue.empty() && op->input("x") != nullptr &&
         op->input("x")->type.is_concrete() && op->output()->type.is_concrete();
}

struct GroupNorm {
  Value* x;
  int64_t groups;
  double epsilon;
};

/// Matches `v` [N, C, ...] as (x - mean) / sqrt(variance + epsilon).
std::optional<GroupNorm> normalized(const Value* v) {
  const Op* back = v->producer();
  if (!is_shaped(back)) return std::nullopt;
  const Op* quotient = made_by(back->input("x"), "real_div");
  if (quotient == nullptr) return std::nullopt;
  const Op* difference = made_by(quotient->input("x"), "sub");
  const Op* root = made_by(quotient->input("y"), "sqrt");
  if (difference == nullptr || root == nullptr) return std::nullopt;
  const Op* sum = made_by(root->input("x"), "add");
  if (sum == nullptr) return std::nullopt;
  const Op* variance = mean_of_groups(sum->input("x"));
  const auto epsilon = number_of(*sum, "y");
  if (variance == nullptr || !epsilon || !(*epsilon >= 0)) return std::nullopt;
  const Op* square = made_by(variance->input("x"), "square");
  if (square == nullptr || square->input("x") != difference->output()) return std::nullopt;
  const Op* mean = mean_of_groups(difference->input("y"));
  if (mean == nullptr || mean->input("x") != difference->input("x")) return std::nullopt;
  const Op* there = mean->input("x")->producer();
  if (!is_shaped(there)) return std::nullopt;
  Value* x = there->input("x");
  const Type &whole = x->type, &parts = there->output()->type;
  if (whole != v->type || whole.dtype() != DType::fp32 || whole.rank() < 3 || parts.rank() < 3) return std::nullopt;
  const int64_t groups = parts.shape()[1];
  if (whole.shape().count() == 0 || parts.shape()[0] != whole.shape()[0] || whole.shape()[1] % groups != 0)
    return std::nullopt;
  return GroupNorm{x, groups, *epsilon};
}

Status recognise_norm(PassContext& c, Op& op) {
  const auto found = normalized(op.output());
  if (!found) return {};
  Builder before = Builder::before(c.table, op);
  Value* y = MOKA_TRY(before.op("moka_group_norm",
                                {{"x", found->x},
                                 {"groups", static_cast<int>(found->groups)},
                                 {"epsilon", Tensor::scalar(DType::fp32, found->epsilon)}},
                                op.name));
  c.remark(cat(op.name, " and what it is made of into one norm of ", found->groups, " groups"));
  take_name(*y, *op.output());
  replace_and_erase(op, y);
  return {};
}

Status recognise_group_norm(PassContext& c) {
  return try_each_op(c.function.body(), [&](Op& op) -> Status {
    if (op.output_count() != 1) return {};
    if (op.has_trait(Trait::alias)) return recognise_norm(c, op);  // may erase op
    if (op.type_name() != "mul" && op.type_name() != "add") return {};
    return take_scale(c, op, "moka_group_norm", [](const Op&) { return 1; });
  });
}

}  // namespace

Pass pass_recognise_group_norm() { return {"recognise_group_norm", recognise_group_norm}; }

}  // namespace moka::passes
