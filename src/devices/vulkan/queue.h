#pragma once

#include "devices/vulkan/recorder.h"

namespace moka::devices::vulkan {

/// One command buffer, recorded once.
class VulkanSubmission final : public kernel::Submission {
 public:
  static Result<std::unique_ptr<kernel::Submission>> make(std::shared_ptr<Context> context,
                                                          const kernel::Region& region);
  ~VulkanSubmission() override;
  std::byte* upload(size_t i) override { return uploads_[i]; }
  const std::byte* download(size_t i) const override { return downloads_[i]; }
  Status submit() override { return commands_->submit(); }
  Status wait() override { return commands_->wait(); }
  const Counters& counters() const { return counters_; }

 private:
  explicit VulkanSubmission(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  std::shared_ptr<Context> context_;
  std::shared_ptr<VulkanBuffer> staging_;  // nullptr where memory is unified
  std::vector<std::byte*> uploads_, downloads_;
  std::unique_ptr<CommandPool> commands_;
  VkDescriptorPool sets_ = VK_NULL_HANDLE;
  Counters counters_;
};

/// All queues of a process feed the one queue of its device, which keeps the order.
class VulkanQueue final : public kernel::Queue {
 public:
  explicit VulkanQueue(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  Result<std::unique_ptr<kernel::Submission>> compile(const kernel::Region& region) override {
    return VulkanSubmission::make(context_, region);
  }

 private:
  std::shared_ptr<Context> context_;
};

}  // namespace moka::devices::vulkan
