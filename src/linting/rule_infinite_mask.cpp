// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "linting/lint.h"

namespace moka::linting {
namespace {

/// Whether a constant is infinite where float16 holds it.
bool is_infinite_in_half(const Subject& subject, const ir::Value* value, const Bounds& bounds) {
  value = behind_moves(value);
  if (value == nullptr || value->constant() == nullptr || !is_float_tensor(value->type)) return false;
  const Interval i = bounds.of(value);
  return std::isinf(i.low) || std::isinf(i.high) || (subject.in_half(*value) && i.magnitude() > kHalfMax + 15);
}

/// Whether each row of a constant mask leaves something.
bool every_row_is_open(const ir::Value* value) {
  const ir::Constant* constant = value->constant();
  if (constant == nullptr || constant->tensor.shape().rank() == 0) return false;
  const ir::Tensor& t = constant->tensor;
  const int64_t row = t.shape()[t.shape().rank() - 1];
  if (row <= 1) return false;
  const ir::TensorView view = t.view();
  for (int64_t start = 0; start < t.count(); start += row) {
    bool open = false;
    for (int64_t i = start; i < start + row && !open; ++i) open = std::isfinite(ir::load_f64(view, i));
    if (!open) return false;
  }
  return true;
}

/// Whether the value reaches a softmax by sums, choices and moves.
bool reaches_softmax(const ir::Value* value, int depth = 0) {
  if (depth > 8) return false;
  for (const ir::Op* user : value->users()) {
    const std::string& type = user->type_name();
    if (type == "softmax") return true;
    if ((type == "add" || type == "select" || type == "cast" || type == "reshape" || type == "expand_dims" ||
         type == "tile" || type == "transpose") &&
        reaches_softmax(user->output(), depth + 1))
      return true;
  }
  return false;
}

void check_product(const Subject& subject, const FunctionView& view, const ir::Op& op, Report& report) {
  for (const auto& [one, other] : {std::pair("x", "y"), std::pair("y", "x")}) {
    const ir::Value *mask = op.input(one), *factor = op.input(other);
    if (mask == nullptr || factor == nullptr || !subject.in_half(*op.output())) continue;
    if (!is_infinite_in_half(subject, mask, *view.bounds) || !view.bounds->of(factor).contains(0)) continue;
    report.add(Level::error, place_of(op),
               {"it multiplies a mask by infinity, and 0 times infinity is not a number",
                cat("'", one, "' is infinite in float16, '", other, "' may be 0"),
                "Multiply by a finite number that float16 has, such as -30000, or use select."},
               &view);
    return;
  }
}

void check_choice(const Subject& subject, const FunctionView& view, const ir::Op& op, Report& report) {
  for (const char* side : {"a", "b", "x", "y"}) {
    const ir::Value* mask = op.input(side);
    if (mask == nullptr || op.output_count() == 0 || !is_infinite_in_half(subject, mask, *view.bounds)) continue;
    mask = behind_moves(mask);
    if (every_row_is_open(mask) || !reaches_softmax(op.output())) continue;
    report.add(
        Level::warning, place_of(op),
        {"a softmax reads its infinities; a row that is masked as a whole becomes not a number",
         cat("'", side, "' is infinite in float16"), "Mask with a finite number that float16 has, such as -30000."},
        &view);
    return;
  }
}

/// Two masks that are finite alone.
void check_sum(const Subject& subject, const FunctionView& view, const ir::Op& op, Report& report) {
  if (!subject.in_half(*op.output())) return;
  const Interval x = view.bounds->of(op.input("x")), y = view.bounds->of(op.input("y"));
  const auto is_mask = [](const Interval& i) { return i.grip != Grip::wide && i.low < -kHalfMax / 4 && i.high <= 1; };
  if (!is_mask(x) || !is_mask(y) || x.low + y.low >= -kHalfMax || std::isinf(x.low) || std::isinf(y.low)) return;
  report.add(Level::warning, place_of(op),
             {"both masks together are infinite in float16, and a softmax of such a row is not a number",
              cat(number(x.low), " and ", number(y.low)), "Use smaller numbers, such as -30000, or combine the masks."},
             &view);
}

void check_infinite_mask(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      if (is_op(&op, "mul")) check_product(subject, view, op, report);
      if (is_op(&op, "select") || is_op(&op, "add")) check_choice(subject, view, op, report);
      if (is_op(&op, "add")) check_sum(subject, view, op, report);
    });
}

}  // namespace

Rule rule_infinite_mask() {
  return {"infinite-mask", Level::error,
          "Masks that are infinite in float16 and become not a number: times 0, added up, or in a row of a softmax",
          "Mask with a finite number that float16 has, such as -30000.", check_infinite_mask};
}

}  // namespace moka::linting
