#include "ir/fixed.h"

#include <algorithm>

namespace moka::ir {

namespace {

constexpr int kMaxDepth = 64;

bool fixed_within(const Value& v, int depth) {
  if (v.constant() != nullptr) return true;
  const Op* op = v.producer();
  if (op == nullptr || depth == 0 || !op->version().reference) return false;
  if (op->has_trait(Trait::random) || op->has_trait(Trait::stateful)) return false;
  for (const Operand& o : op->operands())
    for (const Value* in : o.values)
      if (!fixed_within(*in, depth - 1)) return false;
  return true;
}

bool from_parameter_within(const Value& v, int depth) {
  const Op* op = v.producer();
  if (v.constant() != nullptr || op == nullptr || depth == 0) return false;
  if (op->has_trait(Trait::parameter)) return true;
  return std::any_of(op->operands().begin(), op->operands().end(), [&](const Operand& o) {
    return std::any_of(o.values.begin(), o.values.end(),
                       [&](const Value* in) { return from_parameter_within(*in, depth - 1); });
  });
}

}  // namespace

bool is_fixed(const Value& value) { return fixed_within(value, kMaxDepth); }

bool is_from_parameter(const Value& value) { return is_fixed(value) && from_parameter_within(value, kMaxDepth); }

}  // namespace moka::ir
