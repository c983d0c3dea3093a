#include "devices/vulkan/recorder.h"

#include <algorithm>
#include <map>

namespace moka::devices::vulkan {

namespace {

bool overlap(const Use& a, const Use& b) {
  if (a.parts != 0 && a.parts == b.parts) return false;
  return a.overlaps(b);
}

VkBuffer handle_of(const Use& u) { return static_cast<const VulkanBuffer*>(u.buffer)->handle(); }

}  // namespace

Use Use::of(const kernel::BufferView& v, bool written) {
  auto bytes = kernel::storage_bytes(v.dtype, v.shape, v.layout);
  const size_t element = v.layout.half ? 2 : static_cast<size_t>(ir::bits(v.dtype)) / 8;
  return {v.buffer, v.offset, bytes.ok() ? *bytes : 0, element, written};
}

void wait_for_earlier(const Api& api, VkCommandBuffer commands) {
  VkMemoryBarrier b{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  b.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  b.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                    VK_ACCESS_TRANSFER_WRITE_BIT;
  const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  api.CmdPipelineBarrier(commands, stages, stages, 0, 1, &b, 0, nullptr, 0, nullptr);
}

Groups VulkanRecorder::lines(uint64_t n) {
  constexpr uint64_t kMost = 32768;
  const uint64_t groups = std::max<uint64_t>(1, (n + 255) / 256);
  return {static_cast<uint32_t>(std::min(groups, kMost)), static_cast<uint32_t>((groups + kMost - 1) / kMost), 1};
}

Result<Command> VulkanRecorder::command(std::string_view name, std::vector<uint32_t> constants, std::vector<Use> uses,
                                        std::span<const std::byte> params, Groups groups) const {
  const Shader* shader = find_shader(name);
  if (shader == nullptr) return fail(ErrorCode::internal, "device 'vulkan' has no shader ", name);
  return command(*shader, std::move(constants), std::move(uses), params, groups);
}

Result<Command> VulkanRecorder::command(const Shader& shader, std::vector<uint32_t> constants, std::vector<Use> uses,
                                        std::span<const std::byte> params, Groups groups) const {
  Command c;
  c.key = {&shader, std::move(constants)};
  const std::string_view name = shader.name;
  if (static_cast<size_t>(c.key.shader->bindings) != uses.size())
    return fail(ErrorCode::internal, "shader ", name, " has ", c.key.shader->bindings, " buffers, not ", uses.size());
  const uint64_t alignment = context_->features().alignment;
  for (Use& u : uses) {
    if (u.buffer == nullptr) return fail(ErrorCode::internal, "shader ", name, ": a buffer is missing");
    if (!shader.has_starts) continue;
    const auto first = static_cast<uint32_t>(u.offset % alignment / u.element);
    c.push.insert(c.push.end(), reinterpret_cast<const std::byte*>(&first),
                  reinterpret_cast<const std::byte*>(&first + 1));
  }
  c.push.insert(c.push.end(), params.begin(), params.end());
  if (c.push.size() > Pipelines::kPushBytes)
    return fail(ErrorCode::internal, "shader ", name, " has ", c.push.size(), " bytes of push constants");
  c.uses = std::move(uses);
  c.groups = groups;
  return c;
}

Status VulkanRecorder::dispatch_bytes(std::string_view name, std::vector<uint32_t> constants, std::vector<Use> uses,
                                      std::span<const std::byte> params, Groups groups, std::optional<Chain> chain) {
  commands_.push_back(MOKA_TRY(command(name, std::move(constants), std::move(uses), params, groups)));
  commands_.back().chain = std::move(chain);
  return {};
}

Status VulkanRecorder::dispatch(const Shader& shader, std::vector<uint32_t> constants, std::vector<Use> uses,
                                std::span<const std::byte> params, Groups groups) {
  commands_.push_back(MOKA_TRY(command(shader, std::move(constants), std::move(uses), params, groups)));
  return {};
}

void VulkanRecorder::copy(Use from, Use to) {
  to.written = true;
  from.written = false;
  if (from.bytes == 0) return;
  Command c;
  c.uses = {from, to};
  commands_.push_back(std::move(c));
}

/// Whether anything reads the value after a command, before all of it is written again.
bool VulkanRecorder::is_needed_after(const Use& value, size_t command) const {
  for (size_t i = command + 1; i < commands_.size(); i++) {
    bool covered = false;
    for (const Use& u : commands_[i].uses) {
      if (!u.written && u.overlaps(value)) return true;
      covered |= u.written && u.covers(value);
    }
    if (covered) return false;
  }
  return std::any_of(kept_.begin(), kept_.end(), [&](const Use& k) { return k.overlaps(value); });
}

/// Whether a command between two writes any of the values.
bool VulkanRecorder::is_written_between(const std::vector<Use>& values, size_t earlier, size_t later) const {
  for (size_t i = earlier + 1; i < later; i++)
    for (const Use& u : commands_[i].uses)
      if (u.written && std::any_of(values.begin(), values.end(), [&](const Use& v) { return u.overlaps(v); }))
        return true;
  return false;
}

/// The command that writes what the command `reader` reads, where nothing else looks at it in between.
std::optional<size_t> VulkanRecorder::only_writer(const Use& value, size_t reader) const {
  for (size_t i = reader; i-- > 0;) {
    const Command& c = commands_[i];
    const auto touches = [&](const Use& u) { return u.overlaps(value); };
    if (std::none_of(c.uses.begin(), c.uses.end(), touches)) continue;
    // It may have read the same bytes, which it then replaces.
    const bool writes =
        std::any_of(c.uses.begin(), c.uses.end(), [&](const Use& u) { return u.written && u.is(value); });
    return writes ? std::optional(i) : std::nullopt;
  }
  return std::nullopt;
}

Status VulkanRecorder::join_chains() {
  for (size_t later = 0; later < commands_.size(); later++) {
    bool changed = false;
    for (size_t k = 0; commands_[later].chain && k < commands_[later].chain->inputs.size();) {
      const Chain& chain = *commands_[later].chain;
      const Use value = chain.inputs[k].use;
      const auto earlier = only_writer(value, later);
      const bool alone =
          std::count_if(chain.inputs.begin(), chain.inputs.end(), [&](auto& i) { return i.use.overlaps(value); }) == 1;
      std::optional<Chain> both;
      if (earlier && commands_[*earlier].chain && alone &&
          (chain.out.covers(value) || !is_needed_after(value, later)) &&
          !is_written_between(commands_[*earlier].uses, *earlier, later))
        both = joined(*commands_[*earlier].chain, chain, k);
      if (!both) {
        k++;
        continue;
      }
      commands_[later].chain = std::move(both);
      commands_[later].uses = commands_[later].chain->uses();
      commands_.erase(commands_.begin() + static_cast<std::ptrdiff_t>(*earlier));
      later--;
      k = 0;
      changed = true;
    }
    if (!changed) continue;
    Chain chain = *commands_[later].chain;
    const ChainParams params(chain);
    commands_[later] =
        MOKA_TRY(command(chain.shader(), chain.constants(), chain.uses(),
                         {reinterpret_cast<const std::byte*>(&params), sizeof params}, lines(chain.count())));
    commands_[later].chain = std::move(chain);
  }
  return {};
}

Status VulkanRecorder::join_producers() {
  for (size_t later = 0; later < commands_.size(); later++) {
    const Command& c = commands_[later];
    if (!c.absorb) continue;
    const Use value = c.uses[0];
    const auto earlier = only_writer(value, later);
    if (!earlier || !commands_[*earlier].producer) continue;
    const Producer& producer = *commands_[*earlier].producer;
    // Other invocations still read what the producer reads while one writes.
    const bool alone = std::count_if(c.uses.begin(), c.uses.end(), [&](auto& u) { return u.overlaps(value); }) == 1;
    const bool overwrites = std::any_of(c.uses.begin(), c.uses.end(), [&](const Use& u) {
      return u.written &&
             std::any_of(producer.reads.begin(), producer.reads.end(), [&](auto& r) { return u.overlaps(r); });
    });
    if (!alone || overwrites || is_needed_after(value, later) || is_written_between(producer.reads, *earlier, later))
      continue;
    auto both = c.absorb(producer);
    if (!both) continue;
    commands_[later] =
        MOKA_TRY(command(both->shader, std::move(both->constants), std::move(both->uses), both->params, both->groups));
    commands_[later].functions = both->functions;
    commands_.erase(commands_.begin() + static_cast<std::ptrdiff_t>(*earlier));
    later--;
  }
  return {};
}

void VulkanRecorder::share_pipelines() {
  const auto without_functions = [](const Command& c) {
    PipelineKey key = c.key;
    std::fill_n(key.constants.begin() + static_cast<std::ptrdiff_t>(*c.functions), 2, 0u);
    return key;
  };
  std::map<PipelineKey, const Command*> first;  // by its key without functions
  for (const Command& c : commands_)
    if (c.functions)
      if (PipelineKey bare = without_functions(c); bare != c.key) first.try_emplace(std::move(bare), &c);
  for (Command& c : commands_)
    if (c.functions)
      if (const auto found = first.find(c.key); found != first.end()) c.key = found->second->key;
}

Result<VkDescriptorPool> VulkanRecorder::finish(VkCommandBuffer to, Counters& counters) {
  const Api& api = context_->api();
  const VkDevice device = context_->device();
  const uint64_t alignment = context_->features().alignment;
  Pipelines& pipelines = context_->pipelines();
  MOKA_TRY(join_chains());
  MOKA_TRY(join_producers());
  share_pipelines();
  std::vector<PipelineKey> keys;
  uint32_t sets = 0, buffers = 0;
  for (const Command& c : commands_) {
    for (const Use& u : c.uses)
      if (static_cast<const VulkanBuffer*>(u.buffer)->context() != context_.get())
        return fail(ErrorCode::device_lost, "a buffer of the process that this one was forked from");
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
  std::vector<Use> pending;  // since the last barrier
  for (const Command& c : commands_) {
    const bool waits = std::any_of(c.uses.begin(), c.uses.end(), [&](const Use& now) {
      return std::any_of(pending.begin(), pending.end(),
                         [&](const Use& before) { return (now.written || before.written) && overlap(now, before); });
    });
    if (waits) {
      pending.clear();
      wait_for_earlier(api, to);
      counters.barriers++;
    }
    pending.insert(pending.end(), c.uses.begin(), c.uses.end());
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
    if (!c.push.empty())
      api.CmdPushConstants(to, pipelines.layout(n), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           static_cast<uint32_t>(c.push.size()), c.push.data());
    api.CmdDispatch(to, c.groups.x, c.groups.y, c.groups.z);
    counters.dispatches++;
  }
  return pool;
}

}  // namespace moka::devices::vulkan
