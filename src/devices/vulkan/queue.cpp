// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/queue.h"

#include "devices/vulkan/commands.h"

namespace moka::devices::vulkan {

namespace {

void show_host(const Api& api, VkCommandBuffer commands) {
  VkMemoryBarrier b{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  b.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  b.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  api.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                         VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &b, 0, nullptr, 0, nullptr);
}

}  // namespace

Result<std::unique_ptr<kernel::Submission>> VulkanSubmission::make(std::shared_ptr<Context> context,
                                                                   const gpu::GpuDevice& device,
                                                                   const kernel::Region& region) {
  if (!context->is_own()) return fail(ErrorCode::device_lost, "a queue of the process that this one was forked from");
  std::unique_ptr<VulkanSubmission> s(new VulkanSubmission(std::move(context)));
  const Api& api = s->context_->api();
  s->commands_ = MOKA_TRY(CommandPool::make(s->context_));
  s->host_ = MOKA_TRY(gpu::record_region(device, region));
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  const VkCommandBuffer commands = s->commands_->buffer();
  MOKA_VK(api, BeginCommandBuffer, commands, &begin);
  wait_for_earlier(api, commands);
  s->sets_ = MOKA_TRY(record_commands(*s->context_, s->host_.commands, commands));
  show_host(api, commands);
  MOKA_VK(api, EndCommandBuffer, commands);
  s->host_.commands = {};
  return std::unique_ptr<kernel::Submission>(std::move(s));
}

VulkanSubmission::~VulkanSubmission() {
  if (!context_->is_own()) return;
  if (commands_) (void)commands_->wait();
  commands_.reset();
  context_->api().DestroyDescriptorPool(context_->device(), sets_, nullptr);
}

}  // namespace moka::devices::vulkan
