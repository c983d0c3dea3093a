// SPDX-License-Identifier: Apache-2.0
#include "passes/affine.h"

#include "ir/fixed.h"
#include "passes/rewrite.h"

namespace moka::passes {

using namespace ir;

std::optional<std::vector<double>> vector_of(const Op& op, std::string_view param, size_t channels, double missing,
                                             size_t max_bytes) {
  const Value* v = op.input(param);
  if (v == nullptr) return std::vector<double>(channels, missing);
  const auto t = constant_value(*v, max_bytes);
  if (!t || static_cast<size_t>(t->count()) != channels) return std::nullopt;
  return as_doubles(*t);
}

namespace {

std::optional<Affine> batch_norm(const Op& op, int64_t channels, size_t max_bytes) {
  const auto n = static_cast<size_t>(channels);
  const auto mean = vector_of(op, "mean", n, 0, max_bytes), variance = vector_of(op, "variance", n, 1, max_bytes),
             gamma = vector_of(op, "gamma", n, 1, max_bytes), beta = vector_of(op, "beta", n, 0, max_bytes);
  const auto epsilon = number_of(op, "epsilon");
  if (!mean || !variance || !gamma || !beta || !epsilon) return std::nullopt;
  return affine_of_norm(*mean, *variance, *gamma, *beta, *epsilon);
}

bool varies_only_along(const Shape& shape, int rank, int axis, int64_t channels) {
  if (shape.rank() > rank) return false;
  for (int i = 0; i < shape.rank(); i++)
    if (shape[i] != 1 && (i + rank - shape.rank() != axis || shape[i] != channels)) return false;
  return true;
}

/// The entries of a constant that varies only along dimension `axis` of a tensor of rank `rank`.
std::optional<std::vector<double>> per_channel(const Value* v, int rank, int axis, int64_t channels) {
  const Tensor* t = tensor_constant(v);
  if (t == nullptr || !is_float(t->dtype()) || !varies_only_along(t->shape(), rank, axis, channels))
    return std::nullopt;
  return as_doubles(*t);
}

/// The operand of a sum, difference, product or quotient that is not `x`; nullptr: there is none, or x divides.
Value* other_operand(const Op& op, const Value& x) {
  const std::string& type = op.type_name();
  if (type != "add" && type != "mul" && type != "sub" && type != "real_div") return nullptr;
  if (op.input("x") == nullptr || op.input("y") == nullptr) return nullptr;
  const bool first = op.input("x") == &x;
  Value* other = op.input(first ? "y" : "x");
  return other == &x || (!first && type == "real_div") ? nullptr : other;
}

bool is_vector_of(const Value* v, int64_t channels) {
  return v == nullptr || (is_fixed(*v) && v->type.is_tensor() && v->type.is_concrete() && is_float(v->type.dtype()) &&
                          v->type.shape().count() == channels);
}

}  // namespace

std::optional<Affine> affine_of(const Op& op, const Value& x, int axis, int64_t channels, size_t max_bytes) {
  const std::string& type = op.type_name();
  const int rank = x.type.rank();
  if (!op.epilogue.empty()) return std::nullopt;
  if (type == "batch_norm")
    return axis == 1 && op.input("x") == &x ? batch_norm(op, channels, max_bytes) : std::nullopt;
  if (type == "linear_activation") {
    const auto alpha = number_of(op, "alpha"), beta = number_of(op, "beta");
    if (!alpha || !beta) return std::nullopt;
    return Affine{{*alpha}, {*beta}};
  }
  const Value* other = other_operand(op, x);
  if (other == nullptr) return std::nullopt;
  auto c = per_channel(other, rank, axis, channels);
  if (!c || (c->size() > 1 && x.type.shape()[axis] != channels)) return std::nullopt;
  return affine_of_numbers(type, std::move(*c), op.input("x") != &x);
}

std::optional<ChannelStep> channel_step(const Op& op, Value& x, int axis, int64_t channels, size_t max_bytes) {
  if (auto known = affine_of(op, x, axis, channels, max_bytes)) {
    if (!known->finite()) return std::nullopt;
    const bool scales = known->scales(), shifts = known->shifts();
    return ChannelStep{&op, &x, std::move(known), scales, shifts};
  }
  if (!op.epilogue.empty()) return std::nullopt;
  const std::string& type = op.type_name();
  if (type == "batch_norm") {
    if (axis != 1 || op.input("x") != &x || !number_of(op, "epsilon")) return std::nullopt;
    bool may_change = false;
    for (const char* param : {"mean", "variance", "gamma", "beta"}) {
      const Value* v = op.input(param);
      if (!is_vector_of(v, channels)) return std::nullopt;
      may_change |= v != nullptr && is_from_parameter(*v);
    }
    if (!may_change) return std::nullopt;
    return ChannelStep{&op, &x, std::nullopt, true, true};
  }
  const Value* other = other_operand(op, x);
  if (other == nullptr || !is_from_parameter(*other) || !other->type.is_concrete() || !is_float(other->type.dtype()) ||
      !varies_only_along(other->type.shape(), x.type.rank(), axis, channels) ||
      (other->type.shape().count() > 1 && x.type.shape()[axis] != channels))
    return std::nullopt;
  const bool is_sum = type == "add" || type == "sub";
  return ChannelStep{&op, &x, std::nullopt, !is_sum || (type == "sub" && op.input("y") == &x), is_sum};
}

Result<std::pair<Value*, Value*>> compose(Builder& builder, const std::vector<ChannelStep>& steps, int64_t channels) {
  std::pair<Value*, Value*> made{nullptr, nullptr};
  for (const ChannelStep& step : steps) {
    std::vector<NamedArg> args{{"channels", static_cast<int>(channels)}};
    if (made.first != nullptr) {
      args.emplace_back("scale", made.first);
      args.emplace_back("shift", made.second);
    }
    if (step.known) {
      const auto vector = [](const std::vector<double>& v) {
        return rounded(v, DType::fp64, Shape{static_cast<int64_t>(v.size())});
      };
      args.emplace_back("kind", "affine");
      args.emplace_back("numbers", MOKA_TRY(vector(step.known->scale)));
      args.emplace_back("beta", MOKA_TRY(vector(step.known->shift)));
    } else if (step.op->type_name() == "batch_norm") {
      args.emplace_back("kind", "batch_norm");
      for (const char* param : {"mean", "variance", "gamma", "beta"})
        if (Value* v = step.op->input(param)) args.push_back(given(param, v));
      args.emplace_back("epsilon", Tensor::scalar(DType::fp64, *number_of(*step.op, "epsilon")));
    } else {
      const bool number_first = step.op->input("y") == step.x;
      args.emplace_back("kind", number_first && step.op->type_name() == "sub" ? "sub_from" : step.op->type_name());
      args.push_back(given("numbers", other_operand(*step.op, *step.x)));
    }
    OpSpec spec{"moka_channel_affine", std::move(args), cat(step.op->name, "_affine")};
    const Op* op = MOKA_TRY(builder.append(std::move(spec)));
    made = {op->output(0), op->output(1)};
  }
  return made;
}

}  // namespace moka::passes
