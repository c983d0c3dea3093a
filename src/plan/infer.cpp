#include "plan/planner.h"

namespace moka::plan {

Result<std::optional<std::vector<ir::Type>>> Planner::infer(int64_t& operations) {
  inferred_ = &operations;
  if (!MOKA_TRY(walk(nullptr, {}))) return std::nullopt;
  std::vector<ir::Type> types;
  for (const ir::Value* v : block_.outputs()) types.push_back(place(MOKA_TRY(find(v))).type);
  return types;
}

Result<bool> Planner::infer_control(const ir::Op& op) {
  std::vector<uint32_t> first;
  const std::vector<int> in = MOKA_TRY(operands(op, first));
  for (size_t b = 0; b < 2; b++)
    for (const ir::Value* v : free_values(*op.block(b))) MOKA_TRY(find(v));
  const auto types = MOKA_TRY(control_types(op, in, [&](size_t b, const std::vector<ir::Type>& vars) {
    return infer_block(*op.block(b), vars, plan_.get(), options_, *inferred_);
  }));
  if (!types) return false;
  for (size_t i = 0; i < types->size(); i++) add_result(op.output(i), (*types)[i], {});
  return true;
}

bool Planner::may_expand(const Place& p) const {
  if (inferred_ == nullptr) return true;
  const auto bytes = p.type.is_tensor() && p.type.is_concrete() ? ir::storage_bytes(p.type.dtype(), p.type.shape())
                                                                : Result<size_t>(kEagerConstantBytes);
  return bytes.ok() && *bytes <= kEagerConstantBytes;
}

}  // namespace moka::plan
