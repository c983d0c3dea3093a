// SPDX-License-Identifier: Apache-2.0
#include "training/place_steps.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/fixed.h"

namespace moka::training {

namespace {

using namespace ir;

/// The operation of the function's body that `op` is, or in whose blocks it is.
const Op* outermost(const Op* op) {
  while (op->parent()->parent_op() != nullptr) op = op->parent()->parent_op();
  return op;
}

/// The last operation of the body, by its position, that must have run before the step.
class Before {
 public:
  Before(const std::unordered_map<const Op*, size_t>& positions, const WeightStep& step)
      : positions_(positions), own_(step.ops.begin(), step.ops.end()) {
    readers_of(*step.weight);
    for (const Op* op : step.ops)
      for (const Operand& o : op->operands())
        for (const Value* v : o.values)
          if (v->producer() != nullptr) add(v->producer());
  }

  size_t last() const { return last_; }

 private:
  void add(const Op* op) {
    if (!own_.contains(op)) last_ = std::max(last_, positions_.at(outermost(op)));
  }

  /// Fixed values of the weight may be views of its elements.
  void readers_of(const Value& v) {
    for (const Op* reader : v.users()) {
      add(reader);
      if (own_.contains(reader)) continue;
      for (size_t i = 0; i < reader->output_count(); i++)
        if (is_fixed(*reader->output(i))) readers_of(*reader->output(i));
    }
  }

  const std::unordered_map<const Op*, size_t>& positions_;
  std::unordered_set<const Op*> own_;
  size_t last_ = 0;
};

}  // namespace

void place_steps(const Function& function, std::span<const WeightStep> steps) {
  std::vector<Op*> ops;
  std::unordered_map<const Op*, size_t> positions;
  for (const auto& op : function.body().ops()) {
    positions.emplace(op.get(), ops.size());
    ops.push_back(op.get());
  }
  std::unordered_set<const Op*> moving;
  for (const WeightStep& step : steps) moving.insert(step.ops.begin(), step.ops.end());
  for (const WeightStep& step : steps) {
    const auto behind = ops.begin() + static_cast<std::ptrdiff_t>(Before(positions, step).last()) + 1;
    const auto next = std::find_if(behind, ops.end(), [&](const Op* op) { return !moving.contains(op); });
    if (next == ops.end()) continue;
    for (Op* op : step.ops) function.body().move_before(op, *next);
  }
}

}  // namespace moka::training
