// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <mutex>

#include "devices/vulkan/memory.h"

namespace moka::devices::vulkan {

/// Copies between the host and memory that it does not see, in pieces: while the device copies one, the host fills the
/// next. One for each context. Thread-safe.
class StagingRing {
 public:
  static constexpr size_t kPieces = 4, kPieceBytes = size_t{4} << 20;

  static std::shared_ptr<StagingRing> of(std::shared_ptr<Context> context);
  /// Waits for copies to or from the buffer.
  static void finish(const Context& context, VkBuffer buffer);

  explicit StagingRing(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  /// Returns when `from` may be changed. Submissions that start later see the bytes.
  Status write(const VulkanBuffer& to, size_t offset, const void* from, size_t bytes);
  /// Returns when `to` has the bytes.
  Status read(const VulkanBuffer& from, size_t offset, void* to, size_t bytes);

 private:
  struct Piece {
    std::shared_ptr<VulkanBuffer> staging;
    std::unique_ptr<CommandPool> commands;  ///< of its last copy
    VkBuffer buffer = VK_NULL_HANDLE;       ///< the other side of that copy
    std::byte* to = nullptr;                ///< of a read that is not in host memory yet
    size_t bytes = 0;
  };
  /// The next piece, once its last copy is complete.
  Result<Piece*> take();
  Status settle(Piece& piece);
  Status start(Piece& piece, VkBuffer from, VkBuffer to, const VkBufferCopy& copy);

  std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::array<Piece, kPieces> pieces_;
  size_t next_ = 0;
};

}  // namespace moka::devices::vulkan
