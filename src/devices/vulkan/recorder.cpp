#include "devices/vulkan/recorder.h"

#include <algorithm>

namespace moka::devices::vulkan {

namespace {

bool overlap(const Use& a, const Use& b) {
  if (a.parts != 0 && a.parts == b.parts) return false;
  return a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

VkBuffer handle_of(const Use& u) { return static_cast<const VulkanBuffer*>(u.buffer)->handle(); }

}  // namespace

Use Use::of(const kernel::BufferView& v, bool written) {
  auto bytes = kernel::storage_bytes(v.dtype, v.shape, v.layout);
  const size_t element = v.layout.half ? 2 : static_cast<size_t>(ir::bits(v.dtype)) / 8;
  return {v.buffer, v.offset, bytes.ok() ? *bytes : 0, element, written};
}

Groups VulkanRecorder::lines(uint64_t n) {
  constexpr uint64_t kMost = 32768;
  const uint64_t groups = std::max<uint64_t>(1, (n + 255) / 256);
  return {static_cast<uint32_t>(std::min(groups, kMost)), static_cast<uint32_t>((groups + kMost - 1) / kMost), 1};
}

Status VulkanRecorder::dispatch_bytes(std::string_view name, std::vector<uint32_t> constants, std::vector<Use> uses,
                                      std::span<const std::byte> params, Groups groups) {
  Command c;
  c.key = {find_shader(name), std::move(constants)};
  if (c.key.shader == nullptr) return fail(ErrorCode::internal, "device 'vulkan' has no shader ", name);
  if (static_cast<size_t>(c.key.shader->bindings) != uses.size())
    return fail(ErrorCode::internal, "shader ", name, " has ", c.key.shader->bindings, " buffers, not ", uses.size());
  const uint64_t alignment = context_->features().alignment;
  for (Use& u : uses) {
    if (u.buffer == nullptr) return fail(ErrorCode::internal, "shader ", name, ": a buffer is missing");
    const auto first = static_cast<uint32_t>(u.offset % alignment / u.element);
    c.push.insert(c.push.end(), reinterpret_cast<const std::byte*>(&first),
                  reinterpret_cast<const std::byte*>(&first + 1));
  }
  c.push.insert(c.push.end(), params.begin(), params.end());
  if (c.push.size() > Pipelines::kPushBytes)
    return fail(ErrorCode::internal, "shader ", name, " has ", c.push.size(), " bytes of push constants");
  c.uses = std::move(uses);
  c.groups = groups;
  add(std::move(c));
  return {};
}

void VulkanRecorder::copy(Use from, Use to) {
  to.written = true;
  from.written = false;
  if (from.bytes == 0) return;
  Command c;
  c.uses = {from, to};
  add(std::move(c));
}

void VulkanRecorder::add(Command c) {
  for (const Use& now : c.uses)
    for (const Use& before : pending_)
      if ((now.written || before.written) && overlap(now, before)) c.barrier = true;
  if (c.barrier) pending_.clear();
  pending_.insert(pending_.end(), c.uses.begin(), c.uses.end());
  commands_.push_back(std::move(c));
}

Result<VkDescriptorPool> VulkanRecorder::finish(VkCommandBuffer to, Counters& counters) {
  const Api& api = context_->api();
  const VkDevice device = context_->device();
  const uint64_t alignment = context_->features().alignment;
  Pipelines& pipelines = context_->pipelines();
  std::vector<PipelineKey> keys;
  uint32_t sets = 0, buffers = 0;
  for (const Command& c : commands_) {
    for (const Use& u : c.uses)
      if (static_cast<const VulkanBuffer*>(u.buffer)->context() != context_.get())
        return fail(ErrorCode::device_lost, "device 'vulkan': a buffer of the process that this one was forked from");
    if (c.key.shader == nullptr) continue;
    keys.push_back(c.key);
    sets++;
    buffers += static_cast<uint32_t>(c.uses.size());
  }
  const auto made = MOKA_TRY(pipelines.get(keys));
  VkDescriptorPool pool = VK_NULL_HANDLE;
  if (sets > 0) {
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, buffers};
    VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    info.maxSets = sets;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    MOKA_VK(api, CreateDescriptorPool, device, &info, nullptr, &pool);
  }
  VkPipeline bound = VK_NULL_HANDLE;
  size_t at = 0;
  for (const Command& c : commands_) {
    if (c.barrier) {
      VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
      barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
      barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                              VK_ACCESS_TRANSFER_WRITE_BIT;
      const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
      api.CmdPipelineBarrier(to, stages, stages, 0, 1, &barrier, 0, nullptr, 0, nullptr);
      counters.barriers++;
    }
    if (c.key.shader == nullptr) {
      const VkBufferCopy copy{c.uses[0].offset, c.uses[1].offset, c.uses[0].bytes};
      api.CmdCopyBuffer(to, handle_of(c.uses[0]), handle_of(c.uses[1]), 1, &copy);
      counters.copies++;
      continue;
    }
    const int n = c.key.shader->bindings;
    const VkDescriptorSetLayout layout = pipelines.set_layout(n);
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = pool;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &layout;
    VkDescriptorSet set = VK_NULL_HANDLE;
    if (const VkResult r = api.AllocateDescriptorSets(device, &allocate, &set); r != VK_SUCCESS) {
      api.DestroyDescriptorPool(device, pool, nullptr);
      return error_of(r, "vkAllocateDescriptorSets");
    }
    std::vector<VkDescriptorBufferInfo> infos;
    for (const Use& u : c.uses) {
      const uint64_t begin = u.offset / alignment * alignment;
      const uint64_t end = std::min<uint64_t>((u.offset + std::max<size_t>(u.bytes, 4) + 3) / 4 * 4,
                                              (std::max<size_t>(u.buffer->bytes(), 4) + 3) / 4 * 4);
      infos.push_back({handle_of(u), begin, end - begin});
    }
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.descriptorCount = static_cast<uint32_t>(n);
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = infos.data();
    api.UpdateDescriptorSets(device, 1, &write, 0, nullptr);
    if (made[at] != bound) api.CmdBindPipeline(to, VK_PIPELINE_BIND_POINT_COMPUTE, made[at]);
    bound = made[at++];
    api.CmdBindDescriptorSets(to, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines.layout(n), 0, 1, &set, 0, nullptr);
    api.CmdPushConstants(to, pipelines.layout(n), VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<uint32_t>(c.push.size()),
                         c.push.data());
    api.CmdDispatch(to, c.groups.x, c.groups.y, c.groups.z);
    counters.dispatches++;
  }
  return pool;
}

}  // namespace moka::devices::vulkan
