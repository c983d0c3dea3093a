// SPDX-License-Identifier: Apache-2.0
#include "ir/permutation.h"
#include "passes/norm_scale.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Recognizes layer norms over one axis: the channels of [N, C, ...], or the last axis. Converters write them as means,
/// differences and quotients, or as a norm of the last axis between two transposes.
namespace moka::passes {

namespace {

using namespace ir;

/// The axis of a reduce_mean over one axis with keep_dims.
std::optional<int64_t> mean_axis(const Op* op) {
  if (op == nullptr || number_of(*op, "keep_dims") != 1.0 || !op->input("x")->type.is_ranked()) return std::nullopt;
  const auto axes = ints_of(*op, "axes");
  if (!axes || axes->size() != 1) return std::nullopt;
  return (*axes)[0] < 0 ? (*axes)[0] + op->input("x")->type.rank() : (*axes)[0];
}

/// x and its axis, where `v` is x - mean(x).
struct Centered {
  Value* x;
  int64_t axis;
  bool operator==(const Centered&) const = default;
};

std::optional<Centered> centered(const Value* v) {
  const Op* difference = made_by(v, "sub");
  if (difference == nullptr) return std::nullopt;
  const Op* mean = made_by(difference->input("y"), "reduce_mean");
  const auto axis = mean_axis(mean);
  if (!axis || mean->input("x") != difference->input("x")) return std::nullopt;
  return Centered{difference->input("x"), *axis};
}

/// The value whose square `v` is.
const Value* squared(const Value* v) {
  if (const Op* op = made_by(v, "square")) return op->input("x");
  if (const Op* op = made_by(v, "pow")) return number_of(*op, "y") == 2.0 ? op->input("x") : nullptr;
  if (const Op* op = made_by(v, "mul")) return op->input("x") == op->input("y") ? op->input("x") : nullptr;
  return nullptr;
}

struct LayerNorm {
  Centered of;
  double epsilon;
};

/// Matches `v` as the variance of something, plus a constant.
std::optional<LayerNorm> variance(const Value* v) {
  const Op* sum = made_by(v, "add");
  if (sum == nullptr) return std::nullopt;
  for (const auto& [term, constant] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
    const Op* mean = made_by(sum->input(term), "reduce_mean");
    const auto axis = mean_axis(mean);
    const auto epsilon = number_of(*sum, constant);
    if (!axis || !epsilon || !(*epsilon >= 0)) continue;
    const Value* difference = squared(mean->input("x"));
    const auto of = difference == nullptr ? std::nullopt : centered(difference);
    if (of && of->axis == *axis) return LayerNorm{*of, *epsilon};
  }
  return std::nullopt;
}

/// Matches `v` as the reciprocal root of a variance.
std::optional<LayerNorm> reciprocal_deviation(const Value* v) {
  if (const Op* root = made_by(v, "rsqrt")) {
    auto found = variance(root->input("x"));
    const auto more = number_of(*root, "epsilon");
    if (!found || !more) return std::nullopt;
    found->epsilon += *more;
    return found;
  }
  if (const Op* power = made_by(v, "pow"))
    return number_of(*power, "y") == -0.5 ? variance(power->input("x")) : std::nullopt;
  return std::nullopt;
}

/// Matches what `op` computes as (x - mean) / sqrt(variance + epsilon).
std::optional<LayerNorm> normalized(const Op& op) {
  if (!op.epilogue.empty()) return std::nullopt;
  const auto same = [](const std::optional<LayerNorm>& scale, const Value* difference) {
    return scale && centered(difference) == scale->of;
  };
  if (op.type_name() == "real_div") {
    const Op* root = made_by(op.input("y"), "sqrt");
    const Op* power = made_by(op.input("y"), "pow");
    if (root == nullptr && (power == nullptr || number_of(*power, "y") != 0.5)) return std::nullopt;
    const auto found = variance((root != nullptr ? root : power)->input("x"));
    return same(found, op.input("x")) ? found : std::nullopt;
  }
  for (const auto& [difference, scale] : {std::pair{"x", "y"}, std::pair{"y", "x"}})
    if (const auto found = reciprocal_deviation(op.input(scale)); same(found, op.input(difference))) return found;
  return std::nullopt;
}

Status recognise_layer(PassContext& c, Op& op) {
  const auto found = normalized(op);
  if (!found) return {};
  const auto& [x, axis] = found->of;
  const Type& type = x->type;
  const bool is_image = axis == 1 && type.rank() > 2;
  if (type != op.output()->type || type.dtype() != DType::fp32 || (!is_image && axis != type.rank() - 1)) return {};
  Builder before = Builder::before(c.table, op);
  const int64_t axes[] = {axis};
  Value* y = MOKA_TRY(before.op(
      "layer_norm", {{"x", x}, {"axes", Tensor::i32(axes)}, {"epsilon", Tensor::scalar(DType::fp32, found->epsilon)}},
      op.name));
  c.remark(cat(op.name, " and what it is made of into one layer norm"));
  take_name(*y, *op.output());
  replace_and_erase(op, y);
  return {};
}

/// The axis that a layer norm normalizes, if it is only one.
std::optional<int64_t> norm_axis(const Op& norm) {
  const Type& x = norm.input("x")->type;
  const auto axes = ints_of(norm, "axes");
  if (!x.is_ranked() || !axes || axes->size() != 1) return std::nullopt;
  return (*axes)[0] < 0 ? (*axes)[0] + x.rank() : (*axes)[0];
}

/// Normalizes the channels in place of a norm between two transposes that undo each other.
Status undo_transposes(PassContext& c, Op& back) {
  const Op* norm = made_by(back.input("x"), "layer_norm");
  if (norm == nullptr || !has_one_use(*norm->output()) || !back.epilogue.empty()) return {};
  const Op* there = made_by(norm->input("x"), "transpose");
  const auto axis = norm_axis(*norm);
  if (there == nullptr || !axis) return {};
  const auto first = permutation_of(*there), second = permutation_of(back);
  if (!first || !second || !undoes(*first, *second)) return {};
  const int64_t axes[] = {(*first)[static_cast<size_t>(*axis)]};
  if (axes[0] != 1 || back.output()->type.rank() < 3) return {};
  std::vector<NamedArg> args{{"x", there->input("x")}, {"axes", Tensor::i32(axes)}};
  for (const char* param : {"gamma", "beta", "epsilon"})
    if (Value* v = norm->input(param)) args.push_back(given(param, v));
  Builder before = Builder::before(c.table, back);
  Value* y = MOKA_TRY(before.op("layer_norm", std::move(args), norm->name));
  c.remark(cat("transposes around ", norm->name));
  take_name(*y, *back.output());
  replace_and_erase(back, y);
  return {};
}

Status recognise_layer_norm(PassContext& c) {
  return try_each_op(c.function.body(), [&](Op& op) -> Status {
    if (op.output_count() != 1) return {};
    const std::string& type = op.type_name();
    if (type == "transpose") return undo_transposes(c, op);
    if (type == "real_div") return recognise_layer(c, op);
    if (type != "mul" && type != "add") return {};
    if (type == "mul" && normalized(op)) return recognise_layer(c, op);
    return take_scale(c, op, "layer_norm", norm_axis);
  });
}

}  // namespace

Pass pass_recognise_layer_norm() { return {"recognise_layer_norm", recognise_layer_norm}; }

}  // namespace moka::passes
