// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "ir/fixed.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Moves the sum of a convolution or product and another tensor of its shape into that operation, whose kernel adds
/// while the result is in registers. Only in float32, because in other types the sum would be rounded once instead of
/// twice.
namespace moka::passes {

namespace {

using namespace ir;

class AddendFuser {
 public:
  explicit AddendFuser(PassContext& c) : c_(c) {}

  void block(Block& b) {
    std::unordered_map<const Op*, int> order;
    int n = 0;
    for (const auto& op : b.ops()) order[op.get()] = n++;
    for (auto it = b.ops().begin(); it != b.ops().end();) {
      Op& op = **it++;
      for (size_t i = 0; i < op.block_count(); i++) block(*op.block(i));
      if (op.type_name() == "add" && op.epilogue.empty()) sum(op, order);
    }
  }

 private:
  /// The operand that is computed last takes the other one, which exists by then.
  void sum(Op& add, std::unordered_map<const Op*, int>& order) {
    Value *x = add.input("x"), *y = add.input("y");
    const Type& type = add.output()->type;
    if (x == y || !type.is_tensor() || !type.is_concrete() || type.dtype() != DType::fp32 || x->type != type ||
        y->type != type || x->constant() != nullptr || y->constant() != nullptr || is_from_parameter(*x) ||
        is_from_parameter(*y))
      return;
    auto position = [&](const Value* v) {
      auto found = v->producer() == nullptr ? order.end() : order.find(v->producer());
      return found == order.end() ? -1 : found->second;
    };
    if (position(x) > position(y)) std::swap(x, y);
    Op* producer = position(y) < 0 ? nullptr : y->producer();
    if (producer == nullptr || producer->version().param_index("addend") < 0 || producer->input("addend") != nullptr ||
        !producer->epilogue.empty() || !has_one_use(*y))
      return;
    c_.remark(cat(add.name, " into ", producer->name));
    producer->set_input("addend", {x});
    take_name(*producer->output(), *add.output());
    replace_and_erase(add, producer->output());
  }

  PassContext& c_;
};

Status fuse_addends(PassContext& c) {
  AddendFuser(c).block(c.function.body());
  return {};
}

}  // namespace

Pass pass_fuse_addends() { return {"fuse_addends", fuse_addends}; }

}  // namespace moka::passes
