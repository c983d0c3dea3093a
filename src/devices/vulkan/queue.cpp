#include "devices/vulkan/queue.h"

#include "devices/vulkan/kernels/families.h"

namespace moka::devices::vulkan {

namespace {

constexpr size_t kStagingAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kStagingAlignment - 1) / kStagingAlignment * kStagingAlignment; }

void show_host(const Api& api, VkCommandBuffer commands) {
  VkMemoryBarrier b{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  b.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  b.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  api.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                         VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &b, 0, nullptr, 0, nullptr);
}

}  // namespace

Result<std::unique_ptr<kernel::Submission>> VulkanSubmission::make(std::shared_ptr<Context> context,
                                                                   const kernel::Region& region) {
  if (!context->is_own()) return fail(ErrorCode::device_lost, "a queue of the process that this one was forked from");
  std::unique_ptr<VulkanSubmission> s(new VulkanSubmission(std::move(context)));
  const Api& api = s->context_->api();
  s->commands_ = MOKA_TRY(CommandPool::make(s->context_));
  VulkanRecorder recorder(s->context_);

  std::vector<Use> up, down;
  size_t staging = 0;
  for (const kernel::BufferView& v : region.uploads) up.push_back(Use::write(v));
  for (const kernel::BufferView& v : region.downloads) down.push_back(Use::read(v));
  auto mapped = [](const Use& u) { return static_cast<const VulkanBuffer*>(u.buffer)->mapped(); };
  for (const auto* uses : {&up, &down})
    for (const Use& u : *uses)
      if (mapped(u) == nullptr) staging += aligned(u.bytes);
  if (staging > 0) s->staging_ = MOKA_TRY(VulkanBuffer::make(s->context_, staging, VulkanBuffer::Use::staging));
  for (const Use& u : down) recorder.keep(u);
  for (const kernel::BufferView& v : region.kept) recorder.keep(Use::read(v));
  staging = 0;
  auto stage = [&](const Use& u, std::vector<std::byte*>& seen) -> Use {
    if (std::byte* at = mapped(u)) {
      seen.push_back(at + u.offset);
      return {};
    }
    const Use there{s->staging_.get(), staging, u.bytes, u.element};
    seen.push_back(s->staging_->mapped() + staging);
    staging += aligned(u.bytes);
    return there;
  };
  for (const Use& u : up)
    if (const Use from = stage(u, s->uploads_); from.buffer != nullptr) {
      recorder.copy(from, u);
      s->counters_.uploaded += u.bytes;
    }
  for (const kernel::RegionStep& step : region.steps) {
    if (step.choice != nullptr && step.choice->record) {
      const kernel::RecordArgs args{step.in, step.out, step.scratch, step.call};
      MOKA_TRY(step.choice->record(recorder, args));
    }
    if (!step.epilogue.empty()) MOKA_TRY(record_epilogues(recorder, step.epilogue, step.out[0]));
  }
  for (const Use& u : down)
    if (const Use to = stage(u, s->downloads_); to.buffer != nullptr) {
      recorder.copy(u, to);
      s->counters_.downloaded += u.bytes;
    }

  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  const VkCommandBuffer commands = s->commands_->buffer();
  MOKA_VK(api, BeginCommandBuffer, commands, &begin);
  wait_for_earlier(api, commands);
  s->sets_ = MOKA_TRY(recorder.finish(commands, s->counters_));
  show_host(api, commands);
  MOKA_VK(api, EndCommandBuffer, commands);
  return std::unique_ptr<kernel::Submission>(std::move(s));
}

VulkanSubmission::~VulkanSubmission() {
  if (!context_->is_own()) return;
  if (commands_) (void)commands_->wait();
  commands_.reset();
  context_->api().DestroyDescriptorPool(context_->device(), sets_, nullptr);
}

}  // namespace moka::devices::vulkan
