// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/vulkan/context.h"
#include "kernel/memory.h"

namespace moka::devices::vulkan {

/// A buffer with memory of its own.
class VulkanBuffer final : public kernel::Buffer {
 public:
  enum class Use : uint8_t {
    device,  ///< the device's memory; the host sees it where memory is unified
    staging  ///< host memory that the device copies from and to
  };
  static Result<std::shared_ptr<VulkanBuffer>> make(std::shared_ptr<Context> context, size_t bytes, Use use);
  /// Over memory of the host. Errors: unsupported.
  static Result<std::shared_ptr<VulkanBuffer>> over(std::shared_ptr<Context> context, std::shared_ptr<std::byte> host,
                                                    size_t bytes);
  ~VulkanBuffer() override;

  VkBuffer handle() const { return buffer_; }
  /// Where the host sees it; nullptr when it does not.
  std::byte* mapped() const { return mapped_; }
  const Context* context() const { return context_.get(); }

 private:
  VulkanBuffer(std::shared_ptr<Context> context, size_t bytes) : Buffer(bytes), context_(std::move(context)) {}
  std::shared_ptr<Context> context_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::byte* mapped_ = nullptr;
  std::shared_ptr<std::byte> host_;  ///< set if the memory is the host's
  bool is_staged_ = false;           ///< copies may still be running in the ring
};

class VulkanMemory final : public kernel::Memory {
 public:
  explicit VulkanMemory(size_t card) : card_(card) {}
  size_t alignment() const override;
  Result<std::shared_ptr<kernel::Buffer>> allocate(size_t bytes) const override;
  std::byte* host_address(const kernel::Buffer& buffer) const override;
  size_t share_alignment() const override;
  Result<std::shared_ptr<kernel::Buffer>> share(std::shared_ptr<std::byte> owner, size_t bytes) const override;
  Status write(kernel::Buffer& to, size_t offset, const void* from, size_t bytes) const override;
  Status read(const kernel::Buffer& from, size_t offset, void* to, size_t bytes) const override;

 private:
  size_t card_;
};

}  // namespace moka::devices::vulkan
