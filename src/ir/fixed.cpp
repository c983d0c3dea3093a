// SPDX-License-Identifier: Apache-2.0
#include "ir/fixed.h"

#include <algorithm>
#include <unordered_set>

namespace moka::ir {

namespace {

constexpr int kMaxDepth = 64;

using Values = std::unordered_set<const Value*>;

/// `known`: operations on which the answer is yes.
bool fixed_within(const Value& v, int depth, Values& known) {
  if (v.constant() != nullptr || known.contains(&v)) return true;
  const Op* op = v.producer();
  if (op == nullptr || depth == 0 || !op->version().reference) return false;
  if (op->has_trait(Trait::random) || op->has_trait(Trait::stateful)) return false;
  for (const Operand& o : op->operands())
    for (const Value* in : o.values)
      if (!fixed_within(*in, depth - 1, known)) return false;
  known.insert(&v);
  return true;
}

/// `visited`: operations that need no second visit.
bool from_parameter_within(const Value& v, int depth, Values& visited) {
  const Op* op = v.producer();
  if (v.constant() != nullptr || op == nullptr || depth == 0 || !visited.insert(&v).second) return false;
  if (op->has_trait(Trait::parameter)) return true;
  return std::any_of(op->operands().begin(), op->operands().end(), [&](const Operand& o) {
    return std::any_of(o.values.begin(), o.values.end(),
                       [&](const Value* in) { return from_parameter_within(*in, depth - 1, visited); });
  });
}

}  // namespace

bool is_fixed(const Value& value) {
  Values known;
  return fixed_within(value, kMaxDepth, known);
}

bool is_from_parameter(const Value& value) {
  Values visited;
  return is_fixed(value) && from_parameter_within(value, kMaxDepth, visited);
}

}  // namespace moka::ir
