// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/region.h"
#include "devices/vulkan/memory.h"
#include "devices/vulkan/stamps.h"

namespace moka::devices::vulkan {

/// One command buffer, recorded once. A region that is shown keeps its commands.
class VulkanSubmission final : public kernel::Submission {
 public:
  static Result<std::unique_ptr<kernel::Submission>> make(std::shared_ptr<Context> context,
                                                          const gpu::GpuDevice& device, const kernel::Region& region);
  ~VulkanSubmission() override;
  std::byte* upload(size_t i) override { return host_.uploads[i]; }
  const std::byte* download(size_t i) const override { return host_.downloads[i]; }
  Status submit() override { return commands_->submit(); }
  Status wait() override;
  const gpu::Counters& counters() const { return host_.counters; }
  std::vector<kernel::ShownCommand> commands() const override;
  std::vector<kernel::CommandTime> times() override;
  Status run_each(const std::function<Status(size_t, bool)>& look) override;

 private:
  VulkanSubmission(std::shared_ptr<Context> context, const gpu::GpuDevice& device)
      : context_(std::move(context)), device_(device) {}
  Status run_alone(const gpu::Command& command);
  std::shared_ptr<Context> context_;
  const gpu::GpuDevice& device_;
  gpu::RecordedRegion host_;  // without its commands, unless they are shown
  std::unique_ptr<CommandPool> commands_;
  std::unique_ptr<Stamps> stamps_;
  int64_t waited_ = 0;  ///< when it was waited for, if there are stamps
  VkDescriptorPool sets_ = VK_NULL_HANDLE;
};

/// All queues of a process feed the one queue of its device, which keeps the order.
class VulkanQueue final : public kernel::Queue {
 public:
  VulkanQueue(std::shared_ptr<Context> context, const gpu::GpuDevice& device)
      : context_(std::move(context)), device_(device) {}
  Result<std::unique_ptr<kernel::Submission>> compile(const kernel::Region& region) override {
    return VulkanSubmission::make(context_, device_, region);
  }
  Result<std::optional<kernel::TimestampFacts>> timestamps() override { return timestamp_facts(context_); }

 private:
  std::shared_ptr<Context> context_;
  const gpu::GpuDevice& device_;
};

}  // namespace moka::devices::vulkan
