// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "devices/cpu/common/common.h"

/// Weights that kernels read as they are in the model's file until they are packed (KernelChoice::unpacked).
namespace moka::devices::cpu {

/// What `prepare` packs while other threads may run the kernel.
class PackedBytes {
 public:
  void set(std::shared_ptr<const std::byte> bytes) {
    owner_ = std::move(bytes);
    bytes_.store(owner_.get(), std::memory_order_release);
  }
  /// Null: not packed yet.
  const std::byte* get() const { return bytes_.load(std::memory_order_acquire); }

 private:
  std::shared_ptr<const std::byte> owner_;
  std::atomic<const std::byte*> bytes_{nullptr};
};

/// Constants that the file stores as fp32 or fp16, in row-major order.
class FileWeights {
 public:
  /// nullopt: the constant is small or stored in another form.
  static std::optional<FileWeights> of(const MatchCall& m, int arg);

  const ir::Tensor& tensor() const { return stored_.elements; }
  bool is_half() const { return stored_.elements.dtype() == ir::DType::fp16; }
  /// All elements, which must be floats.
  const float* floats() const { return stored_.elements.as<float>().data(); }
  /// The floats of `to` that `read` needs for n elements.
  int64_t room(int64_t n) const { return is_half() ? n : 0; }
  /// Elements [first, first + n): where the file has them, or, if they are halves, converted into `to`. Never
  /// allocates.
  const float* read(int64_t first, int64_t n, float* to) const;

 private:
  explicit FileWeights(kernel::StoredConstant stored) : stored_(std::move(stored)) {}
  kernel::StoredConstant stored_;
};

}  // namespace moka::devices::cpu
