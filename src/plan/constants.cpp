#include "plan/constants.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "ir/evaluate.h"

namespace moka::plan {

namespace {
constexpr int kMaxDepth = 64;

bool constant_within(const ir::Value& v, int depth) {
  if (v.constant() != nullptr) return true;
  const ir::Op* op = v.producer();
  if (op == nullptr || depth == 0 || !op->version().reference) return false;
  if (op->has_trait(ir::Trait::random) || op->has_trait(ir::Trait::stateful)) return false;
  for (const ir::Operand& o : op->operands())
    for (const ir::Value* in : o.values)
      if (!constant_within(*in, depth - 1)) return false;
  return true;
}
}  // namespace

bool ConstantPool::is_constant(const ir::Value& value) { return constant_within(value, kMaxDepth); }

Result<ir::Tensor> ConstantPool::evaluate(const ir::Value& value, int depth) {
  if (auto it = kept_.find(&value); it != kept_.end()) return it->second;
  if (value.constant() != nullptr) {
    if (value.constant()->tensor.empty_handle())
      return fail(ErrorCode::unsupported, "constant '", value.name, "' of type ", value.type, " is not a tensor");
    return value.constant()->tensor;
  }
  const ir::Op* op = value.producer();
  if (op == nullptr || depth == 0) return fail(ErrorCode::internal, "'", value.name, "' is not a constant");
  std::vector<ir::RuntimeValue> inputs;
  for (const ir::Operand& o : op->operands())
    for (const ir::Value* in : o.values) inputs.emplace_back(MOKA_TRY(evaluate(*in, depth - 1)));
  // Each result is charged to a budget of its own: it is freed as soon as it is packed.
  MemoryBudget once(budget_ ? budget_->limit() : SIZE_MAX);
  ir::EvaluateOptions options;
  options.budget = &once;
  return MOKA_TRY(ir::evaluate_op(*op, inputs, options))[static_cast<size_t>(value.index())].tensor;
}

Result<ir::Tensor> ConstantPool::get(const ir::Value& value, bool keep) {
  std::lock_guard lock(mutex_);
  ir::Tensor t = MOKA_TRY(evaluate(value, kMaxDepth));
  if (keep && value.constant() == nullptr && !kept_.contains(&value)) {
    if (budget_) MOKA_TRY(budget_->take(t.bytes(), cat("constant '", value.name, "'")));
    kept_.emplace(&value, t);
  }
  return t;
}

Result<std::shared_ptr<const std::byte>> ConstantPool::pack(const ir::Value& value, std::string_view key, size_t bytes,
                                                            const Fill& fill) {
  return pack_stored(value, key, bytes,
                     [&](std::byte* to) -> Status { return fill(MOKA_TRY(evaluate(value, kMaxDepth)).view(), to); });
}

Result<std::shared_ptr<const std::byte>> ConstantPool::pack_stored(const ir::Value& value, std::string_view key,
                                                                   size_t bytes, const FillStored& fill) {
  std::lock_guard lock(mutex_);
  auto id = std::pair(&value, std::string(key));
  if (auto it = packed_.find(id); it != packed_.end()) return it->second;
  auto start = std::chrono::steady_clock::now();
  if (budget_) MOKA_TRY(budget_->take(bytes, cat("packed constant '", value.name, "'")));
  auto* raw = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64));
  if (raw == nullptr)
    return fail(ErrorCode::out_of_budget, "no memory for ", bytes, " bytes of packed constant '", value.name, "'");
  std::shared_ptr<const std::byte> p(raw, [](const std::byte* q) { std::free(const_cast<std::byte*>(q)); });
  MOKA_TRY(fill(raw));
  pack_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  packed_bytes_ += bytes;
  packed_.emplace(std::move(id), p);
  return p;
}

double ConstantPool::pack_seconds() const {
  std::lock_guard lock(mutex_);
  return pack_seconds_;
}

size_t ConstantPool::packed_bytes() const {
  std::lock_guard lock(mutex_);
  return packed_bytes_;
}

}  // namespace moka::plan
