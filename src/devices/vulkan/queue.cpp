// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/queue.h"

#include "base/clock.h"
#include "devices/gpu/shown.h"
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
  std::unique_ptr<VulkanSubmission> s(new VulkanSubmission(std::move(context), device));
  const Api& api = s->context_->api();
  s->commands_ = MOKA_TRY(CommandPool::make(s->context_));
  s->host_ = MOKA_TRY(gpu::record_region(device, region));
  if (region.is_shown) s->stamps_ = MOKA_TRY(Stamps::make(s->context_, s->host_.commands.size()));
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  const VkCommandBuffer commands = s->commands_->buffer();
  MOKA_VK(api, BeginCommandBuffer, commands, &begin);
  wait_for_earlier(api, commands);
  s->sets_ = MOKA_TRY(record_commands(*s->context_, s->host_.commands, commands, s->stamps_.get()));
  show_host(api, commands);
  MOKA_VK(api, EndCommandBuffer, commands);
  if (!region.is_shown) s->host_.commands = {};
  return std::unique_ptr<kernel::Submission>(std::move(s));
}

Status VulkanSubmission::wait() {
  MOKA_TRY(commands_->wait());
  if (stamps_ != nullptr) waited_ = clock_nanoseconds();
  return {};
}

std::vector<kernel::ShownCommand> VulkanSubmission::commands() const { return gpu::shown(device_, host_.commands); }

std::vector<kernel::CommandTime> VulkanSubmission::times() {
  return stamps_ == nullptr || waited_ == 0 ? std::vector<kernel::CommandTime>() : stamps_->read(waited_);
}

Status VulkanSubmission::run_alone(const gpu::Command& command) {
  const Api& api = context_->api();
  auto pool = MOKA_TRY(CommandPool::make(context_));
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  MOKA_VK(api, BeginCommandBuffer, pool->buffer(), &begin);
  wait_for_earlier(api, pool->buffer());
  const VkDescriptorPool sets = MOKA_TRY(record_commands(*context_, {&command, 1}, pool->buffer()));
  const auto run = [&]() -> Status {
    show_host(api, pool->buffer());
    MOKA_VK(api, EndCommandBuffer, pool->buffer());
    MOKA_TRY(pool->submit());
    return pool->wait();
  };
  Status status = run();
  pool.reset();
  api.DestroyDescriptorPool(context_->device(), sets, nullptr);
  return status;
}

Status VulkanSubmission::run_each(const std::function<Status(size_t, bool)>& look) {
  for (size_t i = 0; i < host_.commands.size(); i++) {
    MOKA_TRY(look(i, false));
    MOKA_TRY(run_alone(host_.commands[i]));
    MOKA_TRY(look(i, true));
  }
  return {};
}

VulkanSubmission::~VulkanSubmission() {
  if (!context_->is_own()) return;
  if (commands_) (void)commands_->wait();
  commands_.reset();
  stamps_.reset();
  context_->api().DestroyDescriptorPool(context_->device(), sets_, nullptr);
}

}  // namespace moka::devices::vulkan
