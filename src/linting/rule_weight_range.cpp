// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "linting/lint.h"

namespace moka::linting {
namespace {

/// The part of the sum of squares that may be lost on a unit that makes subnormal numbers 0: 40 dB.
constexpr double kLost = 1e-4;
constexpr int64_t kMostWeightElements = int64_t{1} << 28;

struct Kept {
  double squares = 0, lost = 0, greatest = 0;
  int64_t beyond = 0, infinite = 0, nan = 0, vanishing = 0, subnormal = 0, nonzero = 0;
};

Kept look_at(const ir::Tensor& t) {
  Kept k;
  const ir::TensorView view = t.view();
  for (int64_t i = 0; i < t.count(); ++i) {
    const double v = ir::load_f64(view, i), size = std::abs(v);
    if (std::isnan(v)) {
      ++k.nan;
    } else if (std::isinf(v)) {
      ++k.infinite;
    } else if (v != 0) {
      ++k.nonzero;
      k.greatest = std::max(k.greatest, size);
      k.beyond += size > kHalfMax;
      k.squares += v * v;
      if (size >= kHalfNormal) continue;
      k.lost += v * v;
      ++(static_cast<float>(half(v)) == 0 ? k.vanishing : k.subnormal);
    }
  }
  return k;
}

/// Masks are infinite on purpose; the rule infinite-mask looks at them.
bool is_mask(const ir::Value& value) {
  for (const ir::Op* user : value.users())
    if (is_op(user, "select") || is_op(user, "add") || is_op(user, "mul") || is_op(user, "cast") ||
        is_op(user, "fill") || is_op(user, "pad") || is_op(user, "clip") || is_op(user, "scaled_dot_product_attention"))
      return true;
  return false;
}

/// Whether some operation multiplies by the value. An addend may be small, but a factor that float16 makes zero is an
/// error.
bool multiplies(const ir::Value& value) {
  for (const ir::Op* user : value.users())
    for (const ir::Operand& operand : user->operands()) {
      const std::string& name = user->version().params[static_cast<size_t>(operand.param)].name;
      const bool added = name == "bias" || name == "beta" || name == "mean" || name == "variance" ||
                         user->type_name() == "sub" || user->type_name() == "concat";
      if (!added && std::find(operand.values.begin(), operand.values.end(), &value) != operand.values.end())
        return true;
    }
  return false;
}

void check_weight(const Subject& subject, const FunctionView& view, const ir::Value& value, const std::string& name,
                  Report& report) {
  if (!is_float_tensor(value.type) || value.users().empty() || is_mask(value)) return;
  const ir::Tensor& t = value.constant()->tensor;
  if (t.empty_handle() || t.count() < 2 || t.count() > kMostWeightElements) return;
  const bool in_half = subject.in_half(value);
  const Kept k = look_at(t);
  const std::string place = cat("weight '", name, "'");
  if (k.nan + k.infinite > 0) {
    report.add(Level::error, place,
               {"some of its elements are infinite or not a number",
                cat(k.infinite, " infinite and ", k.nan, " not a number of ", t.count()),
                "Convert again from weights without infinities; a float32 weight beyond 65504 becomes infinite when it "
                "is stored as float16."},
               &view);
    return;
  }
  if (!in_half) return;
  if (k.beyond > 0)
    report.add(Level::error, place,
               {"float16 cannot hold it",
                cat(k.beyond, " of ", t.count(), " elements beyond 65504, up to ", number(k.greatest)), ""},
               &view);
  else if (k.nonzero > 0 && k.lost > kLost * k.squares && multiplies(value))
    report.add(Level::warning, place,
               {"it is mostly lost in float16",
                cat(k.vanishing, " elements become 0 and ", k.subnormal, " are subnormal, of ", t.count(),
                    "; the greatest is ", number(k.greatest)),
                "Multiply the weight by a power of two and divide the result by it, or keep the operation in float32."},
               &view);
}

void walk(const Subject& subject, const FunctionView& view, const ir::Block& block, Report& report) {
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->block_count(); ++i) walk(subject, view, *op->block(i), report);
    if (op->has_trait(ir::Trait::constant) && op->output()->constant() != nullptr)
      check_weight(subject, view, *op->output(), op->output()->name, report);
    for (const ir::Operand& operand : op->operands())
      for (const ir::Value* value : operand.values)
        if (value->is_inline_constant())
          check_weight(subject, view, *value,
                       cat(op->name, ".", op->version().params[static_cast<size_t>(operand.param)].name), report);
  }
}

void check_weight_range(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions) walk(subject, view, view.function->body(), report);
}

}  // namespace

Rule rule_weight_range() {
  return {"weight-range", Level::error,
          "Weights that float16 cannot hold: beyond 65504, or lost below 6e-5 (by 40 dB), and infinite ones",
          "Rescale the weight, or keep the operation in float32.", check_weight_range};
}

}  // namespace moka::linting
