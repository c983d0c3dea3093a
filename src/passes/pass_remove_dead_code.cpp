// SPDX-License-Identifier: Apache-2.0
#include "passes/pass.h"

namespace moka::passes {

namespace {

/// Removes operations whose results nothing reads. Control flow stays if anything inside writes a state.
bool writes_state(const ir::Op& op) {
  for (size_t b = 0; b < op.block_count(); b++)
    for (const auto& inner : op.block(b)->ops())
      if (inner->has_trait(ir::Trait::stateful) || writes_state(*inner)) return true;
  return false;
}

void sweep(ir::Block& block, int& removed) {
  for (auto it = block.ops().rbegin(); it != block.ops().rend();) {
    ir::Op& op = **it;
    ++it;
    bool used = op.output_count() == 0 || op.has_trait(ir::Trait::stateful) || writes_state(op);
    for (size_t i = 0; i < op.output_count() && !used; i++) used = op.output(i)->is_used();
    if (!used) {
      bool constant = op.has_trait(ir::Trait::constant);
      it = std::make_reverse_iterator(block.erase(&op));
      removed += !constant;
    } else {
      for (size_t i = 0; i < op.block_count(); i++) sweep(*op.block(i), removed);
    }
  }
}

Status remove_dead_code(PassContext& c) {
  int removed = 0;
  sweep(c.function.body(), removed);
  if (removed > 0) c.remark(cat(removed, removed == 1 ? " operation" : " operations"));
  return {};
}

}  // namespace

Pass pass_remove_dead_code() { return {"remove_dead_code", remove_dead_code}; }

}  // namespace moka::passes
