// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/commands.h"

#include <algorithm>

#include "devices/vulkan/pipelines.h"

namespace moka::devices::vulkan {

namespace {

using gpu::Command;
using gpu::Use;

const VulkanBuffer& buffer_of(const Use& u) { return static_cast<const VulkanBuffer&>(*u.buffer); }

/// A pool with room for the sets of all dispatches; null if there are none.
Result<VkDescriptorPool> make_pool(const Context& context, std::span<const Command> commands) {
  VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0};
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  for (const Command& c : commands) {
    if (c.run.code == nullptr) continue;
    info.maxSets++;
    size.descriptorCount += static_cast<uint32_t>(c.uses.size());
  }
  VkDescriptorPool pool = VK_NULL_HANDLE;
  if (info.maxSets == 0) return pool;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  MOKA_VK(context.api(), CreateDescriptorPool, context.device(), &info, nullptr, &pool);
  return pool;
}

/// A set with the buffers of a dispatch.
Result<VkDescriptorSet> make_set(const Context& context, VkDescriptorPool pool, const Command& c) {
  const uint64_t alignment = context.features().alignment;
  const int n = c.run.code->bindings;
  const VkDescriptorSetLayout layout = context.pipelines().set_layout(n);
  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = pool;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  MOKA_VK(context.api(), AllocateDescriptorSets, context.device(), &allocate, &set);
  std::vector<VkDescriptorBufferInfo> infos;
  for (const Use& u : c.uses) {
    const uint64_t begin = u.offset / alignment * alignment;
    const uint64_t end = std::min<uint64_t>((u.offset + std::max<size_t>(u.bytes, 4) + 3) / 4 * 4,
                                            (std::max<size_t>(u.buffer->bytes(), 4) + 3) / 4 * 4);
    infos.push_back({buffer_of(u).handle(), begin, end - begin});
  }
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = set;
  write.descriptorCount = static_cast<uint32_t>(n);
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = infos.data();
  context.api().UpdateDescriptorSets(context.device(), 1, &write, 0, nullptr);
  return set;
}

Status record_into(const Context& context, std::span<const Command> commands, VkCommandBuffer to,
                   std::span<const VkPipeline> made, VkDescriptorPool pool, Stamps* stamps) {
  const Api& api = context.api();
  VkPipeline bound = VK_NULL_HANDLE;
  size_t at = 0;
  if (stamps != nullptr) stamps->begin(to);
  for (const Command& c : commands) {
    if (c.waits) wait_for_earlier(api, to);
    if (c.run.code == nullptr) {
      const VkBufferCopy copy{c.uses[0].offset, c.uses[1].offset, c.uses[0].bytes};
      api.CmdCopyBuffer(to, buffer_of(c.uses[0]).handle(), buffer_of(c.uses[1]).handle(), 1, &copy);
      if (stamps != nullptr) stamps->add(to);
      continue;
    }
    const VkDescriptorSet set = MOKA_TRY(make_set(context, pool, c));
    const VkPipelineLayout layout = context.pipelines().layout(c.run.code->bindings);
    if (made[at] != bound) api.CmdBindPipeline(to, VK_PIPELINE_BIND_POINT_COMPUTE, made[at]);
    bound = made[at++];
    api.CmdBindDescriptorSets(to, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, nullptr);
    if (!c.params.empty())
      api.CmdPushConstants(to, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<uint32_t>(c.params.size()),
                           c.params.data());
    api.CmdDispatch(to, c.groups.x, c.groups.y, c.groups.z);
    if (stamps != nullptr) stamps->add(to);
  }
  return {};
}

}  // namespace

void wait_for_earlier(const Api& api, VkCommandBuffer commands) {
  VkMemoryBarrier b{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  b.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  b.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                    VK_ACCESS_TRANSFER_WRITE_BIT;
  const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  api.CmdPipelineBarrier(commands, stages, stages, 0, 1, &b, 0, nullptr, 0, nullptr);
}

Result<VkDescriptorPool> record_commands(const Context& context, std::span<const Command> commands, VkCommandBuffer to,
                                         Stamps* stamps) {
  std::vector<gpu::Specialized> keys;
  for (const Command& c : commands) {
    for (const Use& u : c.uses)
      if (buffer_of(u).context() != &context)
        return fail(ErrorCode::device_lost,
                    "a buffer of another card, or of the process that this one was forked from");
    if (c.run.code != nullptr) keys.push_back(c.run);
  }
  const auto made = MOKA_TRY(context.pipelines().get(keys));
  const VkDescriptorPool pool = MOKA_TRY(make_pool(context, commands));
  if (Status recorded = record_into(context, commands, to, made, pool, stamps); !recorded.ok()) {
    context.api().DestroyDescriptorPool(context.device(), pool, nullptr);
    return std::move(recorded.error());
  }
  return pool;
}

}  // namespace moka::devices::vulkan
