#include "plan/constants.h"

#include <chrono>
#include <cstdlib>

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

Result<std::vector<ir::Tensor>> run_reference(const ir::Op& op, std::span<const ir::Tensor> inputs, MemoryBudget* budget) {
  const ir::OpVersion& version = op.version();
  std::vector<ir::TensorView> views;
  std::vector<ir::Type> types;
  views.reserve(inputs.size());
  types.reserve(inputs.size());
  std::vector<ir::Arg> args;
  for (const ir::Tensor& t : inputs) {
    views.push_back(t.view());
    types.push_back(ir::Type::tensor(t.dtype(), t.shape()));
    args.push_back({&types.back(), &views.back()});
  }
  std::vector<uint32_t> first(version.params.size() + 1, 0);
  uint32_t n = 0;
  auto operand = op.operands().begin();
  for (size_t p = 0; p < version.params.size(); p++) {
    first[p] = n;
    if (operand != op.operands().end() && operand->param == static_cast<int>(p)) n += static_cast<uint32_t>((operand++)->values.size());
  }
  first.back() = n;
  ir::OpCall call(version, op.name, args, first);
  call.op = &op;
  std::vector<ir::Type> out_types = MOKA_TRY(version.infer(call));
  std::vector<ir::Tensor> out;
  std::vector<ir::TensorView> out_views;
  for (const ir::Type& t : out_types) {
    if (!t.is_tensor() || !t.is_concrete()) return call.error(cat("its result ", t, " cannot be a constant"));
    size_t bytes = MOKA_TRY(ir::storage_bytes(t.dtype(), t.shape()));
    if (budget != nullptr) {
      MOKA_TRY(budget->take(bytes, cat("constant '", op.name, "'")));
      budget->give_back(bytes);
    }
    out.push_back(MOKA_TRY(ir::Tensor::zeros(t.dtype(), t.shape())));
    out_views.push_back(out.back().view());
  }
  MOKA_TRY(version.reference(call, out_views));
  return out;
}

Result<ir::Tensor> ConstantPool::evaluate(const ir::Value& value, int depth) {
  if (auto it = kept_.find(&value); it != kept_.end()) return it->second;
  if (value.constant() != nullptr) {
    if (value.constant()->tensor.empty_handle())
      return fail(ErrorCode::unsupported, "constant '", value.name, "' of type ", value.type, " is not a tensor");
    return value.constant()->tensor;
  }
  const ir::Op* op = value.producer();
  if (op == nullptr || depth == 0) return fail(ErrorCode::internal, "'", value.name, "' is not a constant");
  std::vector<ir::Tensor> inputs;
  for (const ir::Operand& o : op->operands())
    for (const ir::Value* in : o.values) inputs.push_back(MOKA_TRY(evaluate(*in, depth - 1)));
  return MOKA_TRY(run_reference(*op, inputs, budget_.get()))[static_cast<size_t>(value.index())];
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
  std::lock_guard lock(mutex_);
  auto id = std::pair(&value, std::string(key));
  if (auto it = packed_.find(id); it != packed_.end()) return it->second;
  auto start = std::chrono::steady_clock::now();
  ir::Tensor t = MOKA_TRY(evaluate(value, kMaxDepth));
  if (budget_) MOKA_TRY(budget_->take(bytes, cat("packed constant '", value.name, "'")));
  auto* raw = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64));
  if (raw == nullptr) return fail(ErrorCode::out_of_budget, "no memory for ", bytes, " bytes of packed constant '", value.name, "'");
  std::shared_ptr<const std::byte> p(raw, [](const std::byte* q) { std::free(const_cast<std::byte*>(q)); });
  MOKA_TRY(fill(t.view(), raw));
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
