// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "linting/lint.h"

namespace moka::linting {
namespace {

/// exp of more is infinite in float16. On the Neural Engine softplus already fails at 10.4.
const double kMostExponent = std::log(kHalfMax);
constexpr double kSoftplus = 10.39;

/// x - max(x) is at most 0.
bool is_shifted(const ir::Value* x) {
  const ir::Op* sub = computed_by(x);
  return is_op(sub, "sub") && is_op(computed_by(sub->input("y")), "reduce_max");
}

/// The greatest number of x, from its bounds, or else as measured.
struct Greatest {
  bool is_safe = false, is_seen = false;
  double value = 0;
};
Greatest greatest(const FunctionView& view, const ir::Value* x, double limit) {
  Greatest out;
  const Interval bounds = view.bounds->of(x);
  out.is_safe = bounds.high <= limit || is_shifted(x);
  const Measured* m = measured(view.wide, x);
  if (m != nullptr) out.value = m->greatest;
  out.is_seen = m != nullptr && m->greatest > limit;
  return out;
}

/// The exp whose results a sum adds up.
const ir::Op* summed_exp(const ir::Op* sum) {
  if (is_op(sum, "exp")) return sum;
  if (is_op(sum, "reduce_sum") || is_op(sum, "cumsum")) return summed_exp(computed_by(sum->input("x")));
  if (is_op(sum, "add"))
    for (const char* side : {"x", "y"})
      if (const ir::Op* exp = summed_exp(computed_by(sum->input(side)))) return exp;
  return nullptr;
}

void check_log(const FunctionView& view, const ir::Op& op, Report& report) {
  const ir::Op* x = computed_by(op.input("x"));
  if (is_op(x, "softmax")) {
    report.add(Level::warning, place_of(op),
               {"it is the logarithm of a softmax, whose small probabilities are 0 in float16, and log(0) is infinite",
                cat(place_of(*x), " gives its input"),
                "Compute x - reduce_log_sum_exp(x - reduce_max(x)) - reduce_max(x) instead."},
               &view);
    return;
  }
  const ir::Op* exp = summed_exp(x);
  if (exp == nullptr || is_op(x, "exp")) return;
  const Greatest of = greatest(view, exp->input("x"), kMostExponent);
  if (of.is_safe) return;
  report.add(Level::warning, place_of(op),
             {"it is the logarithm of a sum of exponentials, which overflow in float16 above 11.09",
              cat(place_of(*exp), " has no bound", of.is_seen ? cat("; measured up to ", number(of.value)) : ""), ""},
             &view);
}

void check_quotient(const FunctionView& view, const ir::Op& op, Report& report) {
  const ir::Op *exp = computed_by(op.input("x")), *sum = computed_by(op.input("y"));
  if (!is_op(exp, "exp") || !is_op(sum, "reduce_sum") || summed_exp(sum) != exp) return;
  if (greatest(view, exp->input("x"), kMostExponent).is_safe) return;
  report.add(Level::warning, place_of(op),
             {"it is a softmax by hand, whose exponentials overflow in float16 above 11.09", place_of(*exp),
              "Use the operation softmax, or subtract reduce_max(x) first."},
             &view);
}

void check_operation(const FunctionView& view, const ir::Op& op, double limit, const char* what, Report& report) {
  const Greatest of = greatest(view, op.input("x"), limit);
  if (of.is_safe) return;
  const Interval bounds = view.bounds->of(op.input("x"));
  const bool reached = bounds.is_bounded() && bounds.grip != Grip::wide;
  report.add(of.is_seen || reached ? Level::warning : Level::note, place_of(op),
             {cat(what, " becomes 0 or infinite on the Neural Engine where its input exceeds ", number(limit)),
              of.is_seen ? cat("measured up to ", number(of.value))
              : reached  ? cat("the allowed inputs give ", range(bounds.low, bounds.high))
                         : std::string("its input has no bound"),
              ""},
             &view);
}

void check_exponential_sum(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      if (op.output_count() == 0 || !subject.in_half(*op.output())) return;
      if (is_op(&op, "log")) check_log(view, op, report);
      if (is_op(&op, "real_div")) check_quotient(view, op, report);
      if (is_op(&op, "softplus")) check_operation(view, op, kSoftplus, "softplus", report);
      if (is_op(&op, "reduce_log_sum_exp")) {
        const ir::Type &x = op.input("x")->type, &y = op.output()->type;
        const double n =
            x.is_concrete() && y.is_concrete()
                ? static_cast<double>(x.shape().count()) / std::max<double>(1, static_cast<double>(y.shape().count()))
                : 1;
        check_operation(view, op, kMostExponent - std::log(std::max(n, 1.0)), "the sum of exponentials", report);
      }
    });
}

}  // namespace

Rule rule_exponential_sum() {
  return {"exponential-sum", Level::warning,
          "Softplus, log-sum-exp, log-softmax and softmax by hand, whose exponentials overflow or vanish in float16",
          "Subtract reduce_max(x) before exp and add it after log; softplus(x) is max(x, 0) + log(1 + exp(-|x|)).",
          check_exponential_sum};
}

}  // namespace moka::linting
