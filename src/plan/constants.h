// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/budget.h"
#include "base/file_reader.h"
#include "base/memory.h"
#include "ir/program.h"
#include "kernel/memory.h"
#include "kernel/stored.h"
#include "plan/packed_cache.h"
#include "plan/packed_store.h"
#include "plan/parameters.h"

namespace moka::plan {

/// A buffer in `memory` with the bytes that `fill` writes. Errors: out_of_budget, and those of `fill`.
Result<std::shared_ptr<kernel::Buffer>> upload_to(const kernel::Memory& memory, size_t bytes,
                                                  const std::function<Status(std::byte* to)>& fill);

/// Values of a program that do not depend on its inputs: `const`, compressed weights, parameters, and operations on
/// these alone. They are expanded on demand, packed once per (value, key), and shared by all plans of a model.
/// Thread-safe.
class ConstantPool {
 public:
  /// `renewable`: `renew` may be called, so nothing is shared and no kernel keeps the elements of a parameter.
  /// `store` holds what other functions and models of the same file packed, and other versions of the parameters;
  /// `cache` holds what earlier processes packed. Either may be null.
  explicit ConstantPool(std::shared_ptr<MemoryBudget> budget, std::shared_ptr<PackedStore> store = nullptr,
                        std::shared_ptr<PackedCache> cache = nullptr, ParameterValues parameters = {},
                        bool renewable = false)
      : budget_(std::move(budget)),
        store_(std::move(store)),
        cache_(std::move(cache)),
        parameters_(std::move(parameters)),
        renewable_(renewable) {}

  /// Whether `value` is constant for every input.
  static bool is_constant(const ir::Value& value);

  /// The value, row-major. `keep`: hold it as long as the pool lives.
  Result<ir::Tensor> get(const ir::Value& value, bool keep);

  /// How the file stores the value; nullopt when the file lacks it or stores it in a form that StoredConstant cannot
  /// describe. Small parts are converted.
  Result<std::optional<kernel::StoredConstant>> stored(const ir::Value& value);

  using Fill = std::function<Status(const ir::TensorView& value, std::byte* to)>;
  /// `reader` reads constants that are packed from the file's own bytes; nullptr: they are read through the mapping.
  Result<std::shared_ptr<const std::byte>> pack(const ir::Value& value, std::string_view key, size_t bytes,
                                                const Fill& fill, FileReader* reader);
  /// As `pack`, without expanding the value.
  using FillStored = std::function<Status(std::byte* to)>;
  Result<std::shared_ptr<const std::byte>> pack_stored(const ir::Value& value, std::string_view key, size_t bytes,
                                                       const FillStored& fill);

  /// As `pack_stored`, but into a buffer of `memory`. `key` must name the device.
  Result<std::shared_ptr<const kernel::Buffer>> upload(const ir::Value& value, const kernel::Memory& memory,
                                                       std::string_view key, size_t bytes, const FillStored& fill);

  /// The value in a layout in a buffer of `memory`, row by row as `from` has it.
  Result<std::shared_ptr<const kernel::Buffer>> upload_plain(const ir::Value& value, const kernel::Memory& memory,
                                                             std::string_view key, const ir::Type& type,
                                                             const kernel::Layout& from, const kernel::Layout& to,
                                                             size_t bytes);

  /// The bytes of parameters have changed in place. Brings what the pool keeps of them up to date, in the memory where
  /// it is. What is packed from them is filled again when it is next asked for. Precondition: the pool is renewable and
  /// has neither store nor cache, and no plan of it is running.
  Status renew();

  /// Whether `pack` has packed it already, in this pool or another one of the same store.
  bool is_packed(const ir::Value& value, std::string_view key, size_t bytes);

  PackedCache* cache() const { return cache_.get(); }
  /// Does not count constants that the store or the cache already had.
  size_t packed_bytes() const { return packed_bytes_.load(std::memory_order_relaxed); }
  /// Packed constants and values that another pool had made. No other figure counts them.
  size_t shared_bytes() const { return shared_bytes_.load(std::memory_order_relaxed); }
  /// Values that `get` keeps and that are too large for the heap.
  size_t kept_bytes();
  /// Seconds spent on preparing kernels so far.
  double prepare_seconds() const { return prepare_seconds_.load(std::memory_order_relaxed); }
  void add_prepare_seconds(double s) { prepare_seconds_.fetch_add(s, std::memory_order_relaxed); }

 private:
  /// Results that may be needed again.
  using Results = std::unordered_map<const ir::Value*, ir::Tensor>;
  Result<ir::Tensor> evaluate(const ir::Value& value);
  Result<ir::Tensor> evaluate(const ir::Value& value, int depth, Results& shared);
  std::shared_ptr<Packed> entry(const ir::Value& value, std::string_view key, size_t bytes,
                                PackedStore::Sharing sharing = PackedStore::Sharing::process);
  /// Counts an entry that this pool made, or else that it shares, once. Returns whether the pool made it.
  bool count(const Packed& entry, size_t bytes, bool is_own);
  std::shared_ptr<MemoryBudget> budget_;
  std::shared_ptr<PackedStore> store_;
  std::shared_ptr<PackedCache> cache_;
  const ParameterValues parameters_;
  const bool renewable_;
  PiecePool memory_;
  uint64_t version_ = 0;
  std::mutex mutex_;  ///< guards the maps
  struct Kept {
    ir::Tensor tensor;
    bool is_own;  ///< no other pool and no other value had it
  };
  std::map<const ir::Value*, Kept> kept_;
  std::map<std::pair<const ir::Value*, std::string>, std::shared_ptr<Packed>> packed_;
  std::vector<std::function<Status()>> plain_;  ///< upload what upload_plain made of parameters again
  std::set<const Packed*> counted_;             ///< of those in packed_
  std::atomic<size_t> packed_bytes_{0}, shared_bytes_{0};
  std::atomic<double> prepare_seconds_{0};
};

}  // namespace moka::plan
