// SPDX-License-Identifier: Apache-2.0
#include "plan/constants.h"

#include <cstdint>
#include <cstring>
#include <unordered_set>
#include <vector>

#include "base/bytes.h"
#include "ir/evaluate.h"
#include "ir/fixed.h"
#include "kernel/layout.h"

namespace moka::plan {

namespace {
constexpr int kMaxDepth = 64;
constexpr size_t kLargePart = size_t{64} << 10;

/// Adds the large constants that `v` is made from, and the operations that are visited.
void add_file_parts(const ir::Value& v, const ParameterValues& parameters, int depth,
                    std::unordered_set<const ir::Value*>& visited, std::vector<const ir::Tensor*>& parts) {
  if (const ir::Tensor* t = held_tensor(v, parameters)) {
    if (t->bytes() >= kLargePart) parts.push_back(t);
    return;
  }
  if (v.producer() == nullptr || depth == 0 || !visited.insert(&v).second) return;
  for (const ir::Operand& o : v.producer()->operands())
    for (const ir::Value* in : o.values) add_file_parts(*in, parameters, depth - 1, visited, parts);
}

/// The large constants that `v` is made from.
std::vector<const ir::Tensor*> file_parts(const ir::Value& v, const ParameterValues& parameters) {
  std::unordered_set<const ir::Value*> visited;
  std::vector<const ir::Tensor*> parts;
  add_file_parts(v, parameters, kMaxDepth, visited, parts);
  return parts;
}
}  // namespace

bool ConstantPool::is_constant(const ir::Value& value) { return ir::is_fixed(value); }

Result<ir::Tensor> ConstantPool::evaluate(const ir::Value& value) {
  Results shared;
  return evaluate(value, kMaxDepth, shared);
}

Result<ir::Tensor> ConstantPool::evaluate(const ir::Value& value, int depth, Results& shared) {
  if (const auto it = shared.find(&value); it != shared.end()) return it->second;
  {
    std::lock_guard lock(mutex_);
    if (auto it = kept_.find(&value); it != kept_.end()) return it->second.tensor;
  }
  if (const ir::Tensor* held = held_tensor(value, parameters_)) return *held;
  if (value.constant() != nullptr)
    return fail(ErrorCode::unsupported, "constant '", value.name, "' of type ", value.type, " is not a tensor");
  const ir::Op* op = value.producer();
  if (op == nullptr || depth == 0) return fail(ErrorCode::internal, "'", value.name, "' is not a constant");
  std::vector<ir::RuntimeValue> inputs;
  for (const ir::Operand& o : op->operands())
    for (const ir::Value* in : o.values) inputs.emplace_back(MOKA_TRY(evaluate(*in, depth - 1, shared)));
  // Each result has its own budget, because it is freed as soon as it is packed.
  MemoryBudget once(budget_ ? budget_->limit() : SIZE_MAX);
  ir::EvaluateOptions options;
  options.budget = &once;
  std::vector<ir::RuntimeValue> made = MOKA_TRY(ir::evaluate_op(*op, inputs, options));
  if (made.size() > 1 || value.users().size() > 1)
    for (size_t i = 0; i < made.size(); i++) shared.emplace(op->output(i), made[i].tensor);
  return std::move(made[static_cast<size_t>(value.index())].tensor);
}

Result<ir::Tensor> ConstantPool::get(const ir::Value& value, bool keep) {
  if (!keep || value.constant() != nullptr || held_tensor(value, parameters_) != nullptr) return evaluate(value);
  const std::shared_ptr<Packed> there = entry(value, "value", 0);
  std::lock_guard making(there->mutex);
  const bool is_new = there->value.empty_handle();
  if (is_new) {
    ir::Tensor t = MOKA_TRY(evaluate(value));
    if (budget_) MOKA_TRY(budget_->take(t.bytes(), cat("constant '", value.name, "'")));
    there->value = std::move(t);
  }
  const bool is_own = count(*there, there->value.bytes(), is_new);
  std::lock_guard lock(mutex_);
  return kept_.try_emplace(&value, Kept{there->value, is_own}).first->second.tensor;
}

size_t ConstantPool::kept_bytes() {
  constexpr size_t kMapped = size_t{2} << 20;  // as in allocate_zeros
  size_t n = 0;
  std::lock_guard lock(mutex_);
  for (const auto& [value, kept] : kept_)
    if (kept.is_own && kept.tensor.bytes() >= kMapped && !place_in_file(kept.tensor.data(), kept.tensor.bytes()))
      n += kept.tensor.bytes();
  return n;
}

Result<std::shared_ptr<const std::byte>> ConstantPool::pack(const ir::Value& value, std::string_view key, size_t bytes,
                                                            const Fill& fill, FileReader* reader) {
  return pack_stored(value, key, bytes, [&](std::byte* to) -> Status {
    if (const ir::Tensor* t = held_tensor(value, parameters_); t != nullptr && reader != nullptr)
      if (const auto read = reader->read(t->data(), t->bytes())) {
        const Bytes bytes{{read.get(), t->bytes()}, read};
        return fill(MOKA_TRY(ir::Tensor::wrap_unaligned(t->dtype(), t->shape(), bytes)).view(), to);
      }
    const std::vector<const ir::Tensor*> parts = file_parts(value, parameters_);
    for (const ir::Tensor* t : parts) read_ahead(t->data(), t->bytes());
    MOKA_TRY(fill(MOKA_TRY(evaluate(value)).view(), to));
    for (const ir::Tensor* t : parts) drop_pages(t->data(), t->bytes());
    return {};
  });
}

Status ConstantPool::renew() {
  version_++;
  std::vector<std::pair<const ir::Value*, ir::Tensor>> stale;
  for (const auto& [value, kept] : kept_)
    if (ir::is_from_parameter(*value)) stale.emplace_back(value, kept.tensor);
  for (const auto& [value, tensor] : stale) kept_.erase(value);
  for (auto& [value, tensor] : stale) {
    const ir::Tensor now = MOKA_TRY(evaluate(*value));
    memcpy(tensor.mutable_data(), now.data(), now.bytes());
  }
  for (auto& [value, tensor] : stale) kept_.emplace(value, Kept{std::move(tensor), true});
  for (const auto& again : plain_) MOKA_TRY(again());
  return {};
}

std::shared_ptr<Packed> ConstantPool::entry(const ir::Value& value, std::string_view key, size_t bytes,
                                            PackedStore::Sharing sharing) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Packed>& e = packed_[std::pair(&value, std::string(key))];
  if (e != nullptr) return e;
  Identity identity = store_ == nullptr ? Identity() : identity_of(value, parameters_);
  if (identity.text.empty())
    e = std::make_shared<Packed>();
  else
    e = store_->entry(cat(key, " of ", bytes), std::move(identity), sharing);
  return e;
}

bool ConstantPool::count(const Packed& entry, size_t bytes, bool is_own) {
  std::lock_guard lock(mutex_);
  if (!counted_.insert(&entry).second) return false;
  if (!is_own) shared_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return is_own;
}

bool ConstantPool::is_packed(const ir::Value& value, std::string_view key, size_t bytes) {
  const std::shared_ptr<Packed> packed = entry(value, key, bytes);
  const std::unique_lock lock(packed->mutex, std::try_to_lock);
  return lock && packed->bytes != nullptr;
}

Result<std::shared_ptr<const std::byte>> ConstantPool::pack_stored(const ir::Value& value, std::string_view key,
                                                                   size_t bytes, const FillStored& fill) {
  const std::shared_ptr<Packed> packed = entry(value, key, bytes);
  std::string lasting = cache_ ? lasting_identity_of(value, *cache_, parameters_) : std::string();
  if (!lasting.empty()) lasting = cat(key, " of ", bytes, " from ", lasting);
  std::lock_guard lock(packed->mutex);
  bool is_found = false;
  if (packed->bytes == nullptr && !lasting.empty()) {
    packed->bytes = cache_->find(lasting, bytes);
    is_found = packed->bytes != nullptr;
  }
  if (packed->bytes != nullptr && packed->version != version_ && packed->writable != nullptr) {
    packed->version = version_;
    if (ir::is_from_parameter(value)) MOKA_TRY(fill(packed->writable));
    return packed->bytes;
  }
  if (packed->bytes != nullptr) {
    count(*packed, bytes, is_found);
    if (!lasting.empty()) cache_->add(lasting, packed->bytes, bytes);
    return packed->bytes;
  }
  if (budget_) MOKA_TRY(budget_->take(bytes, cat("packed constant '", value.name, "'")));
  std::shared_ptr<std::byte> to = memory_.take(bytes);
  if (to == nullptr)
    return fail(ErrorCode::out_of_budget, "no memory for ", bytes, " bytes of packed constant '", value.name, "'");
  MOKA_TRY(fill(to.get()));
  packed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (renewable_) packed->writable = to.get();
  packed->version = version_;
  packed->bytes = std::move(to);
  count(*packed, bytes, true);
  if (!lasting.empty()) cache_->add(lasting, packed->bytes, bytes);
  return packed->bytes;
}

namespace {

Status fill_buffer(kernel::Buffer& buffer, const kernel::Memory& memory, size_t bytes,
                   const ConstantPool::FillStored& fill) {
  if (std::byte* there = memory.host_address(buffer)) return fill(there);
  const std::shared_ptr<std::byte> host = allocate_large(bytes + 64);
  if (host == nullptr) return fail(ErrorCode::out_of_budget, "no memory for ", bytes, " bytes of a constant");
  MOKA_TRY(fill(host.get()));
  return memory.write(buffer, 0, host.get(), bytes);
}

}  // namespace

Result<std::shared_ptr<kernel::Buffer>> upload_to(const kernel::Memory& memory, size_t bytes,
                                                  const std::function<Status(std::byte* to)>& fill) {
  std::shared_ptr<kernel::Buffer> buffer = MOKA_TRY(memory.allocate(bytes));
  MOKA_TRY(fill_buffer(*buffer, memory, bytes, fill));
  return buffer;
}

Result<std::shared_ptr<const kernel::Buffer>> ConstantPool::upload(const ir::Value& value, const kernel::Memory& memory,
                                                                   std::string_view key, size_t bytes,
                                                                   const FillStored& fill) {
  // Other models of the process may outlive the device, or use it after it failed.
  const std::shared_ptr<Packed> packed = entry(value, key, bytes, PackedStore::Sharing::store);
  std::lock_guard lock(packed->mutex);
  const bool is_new = packed->buffer == nullptr;
  if (is_new) {
    packed->buffer = MOKA_TRY_IN(upload_to(memory, bytes, fill), cat("constant '", value.name, "'"));
    packed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  } else if (renewable_ && packed->version != version_ && ir::is_from_parameter(value)) {
    MOKA_TRY(fill_buffer(*packed->buffer, memory, bytes, fill));
  }
  packed->version = version_;
  count(*packed, bytes, is_new);
  return packed->buffer;
}

Result<std::shared_ptr<const kernel::Buffer>> ConstantPool::upload_plain(const ir::Value& value,
                                                                         const kernel::Memory& memory,
                                                                         std::string_view key, const ir::Type& type,
                                                                         const kernel::Layout& from,
                                                                         const kernel::Layout& to, size_t bytes) {
  const auto fill = [this, &value, type, from, to](std::byte* data) -> Status {
    const ir::Tensor tensor = MOKA_TRY(get(value, false));
    kernel::convert_layout(tensor.view(), from, {type.dtype(), type.shape(), data}, to, 0,
                           kernel::convert_tiles(type.shape(), from, to));
    return {};
  };
  if (renewable_ && ir::is_from_parameter(value)) {
    const std::lock_guard lock(mutex_);
    plain_.push_back([this, &value, &memory, name = std::string(key), bytes, fill]() -> Status {
      MOKA_TRY(upload(value, memory, name, bytes, fill));
      return {};
    });
  }
  return upload(value, memory, key, bytes, fill);
}

}  // namespace moka::plan
