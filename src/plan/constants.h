#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "base/budget.h"
#include "ir/program.h"
#include "kernel/stored.h"

namespace moka::plan {

/// Values of a program that do not depend on its inputs: `const`, compressed weights, and operations on them alone.
/// Expanded when asked for, packed once per (value, key), shared by all plans of a model. Thread-safe.
class ConstantPool {
 public:
  explicit ConstantPool(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}

  /// Whether `value` is constant for every input.
  static bool is_constant(const ir::Value& value);

  /// The value, row-major. `keep`: remember it for the life of the pool.
  Result<ir::Tensor> get(const ir::Value& value, bool keep);

  /// How the file holds the value; nullopt when it is not held as such, or in another way. Small parts are converted.
  Result<std::optional<kernel::StoredConstant>> stored(const ir::Value& value);

  using Fill = std::function<Status(const ir::TensorView& value, std::byte* to)>;
  Result<std::shared_ptr<const std::byte>> pack(const ir::Value& value, std::string_view key, size_t bytes,
                                                const Fill& fill);
  /// As `pack`, without expanding the value.
  using FillStored = std::function<Status(std::byte* to)>;
  Result<std::shared_ptr<const std::byte>> pack_stored(const ir::Value& value, std::string_view key, size_t bytes,
                                                       const FillStored& fill);

  /// Seconds and bytes spent on packing so far.
  double pack_seconds() const;
  size_t packed_bytes() const;

 private:
  Result<ir::Tensor> evaluate(const ir::Value& value, int depth);
  std::shared_ptr<MemoryBudget> budget_;
  mutable std::recursive_mutex mutex_;
  std::map<const ir::Value*, ir::Tensor> kept_;
  std::map<std::pair<const ir::Value*, std::string>, std::shared_ptr<const std::byte>> packed_;
  double pack_seconds_ = 0;
  size_t packed_bytes_ = 0;
};

}  // namespace moka::plan
