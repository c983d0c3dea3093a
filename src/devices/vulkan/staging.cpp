// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/staging.h"

#include <algorithm>
#include <cstring>

#include "devices/vulkan/commands.h"

namespace moka::devices::vulkan {

namespace {

/// One ring for each context. Contexts live until the process ends, so rings are never removed.
struct Rings {
  std::mutex mutex;
  std::vector<std::pair<const Context*, std::shared_ptr<StagingRing>>> all;
};

Rings& rings() {
  static auto* r = new Rings;
  return *r;
}

std::shared_ptr<StagingRing> find(const Context& context) {
  for (const auto& [of, ring] : rings().all)
    if (of == &context) return ring;
  return nullptr;
}

}  // namespace

std::shared_ptr<StagingRing> StagingRing::of(std::shared_ptr<Context> context) {
  std::lock_guard lock(rings().mutex);
  if (auto ring = find(*context)) return ring;
  const Context* key = context.get();
  return rings().all.emplace_back(key, std::make_shared<StagingRing>(std::move(context))).second;
}

void StagingRing::finish(const Context& context, VkBuffer buffer) {
  std::shared_ptr<StagingRing> ring;
  {
    std::lock_guard lock(rings().mutex);
    ring = find(context);
  }
  if (!ring) return;
  std::lock_guard lock(ring->mutex_);
  for (Piece& p : ring->pieces_)
    if (p.buffer == buffer) (void)ring->settle(p);
}

Status StagingRing::settle(Piece& piece) {
  if (!piece.commands) return {};
  Status done = piece.commands->wait();
  if (done.ok() && piece.to != nullptr) std::memcpy(piece.to, piece.staging->mapped(), piece.bytes);
  piece.commands.reset();
  piece.buffer = VK_NULL_HANDLE;
  piece.to = nullptr;
  return done;
}

Result<StagingRing::Piece*> StagingRing::take() {
  Piece& p = pieces_[next_++ % kPieces];
  MOKA_TRY(settle(p));
  if (!p.staging) p.staging = MOKA_TRY(VulkanBuffer::make(context_, kPieceBytes, VulkanBuffer::Use::staging));
  return &p;
}

Status StagingRing::start(Piece& piece, VkBuffer from, VkBuffer to, const VkBufferCopy& copy) {
  const Api& api = context_->api();
  auto commands = MOKA_TRY(CommandPool::make(context_));
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  MOKA_VK(api, BeginCommandBuffer, commands->buffer(), &begin);
  wait_for_earlier(api, commands->buffer());
  api.CmdCopyBuffer(commands->buffer(), from, to, 1, &copy);
  VkMemoryBarrier after{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  after.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  after.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                        VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT;
  api.CmdPipelineBarrier(
      commands->buffer(), VK_PIPELINE_STAGE_TRANSFER_BIT,
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &after,
      0, nullptr, 0, nullptr);
  MOKA_VK(api, EndCommandBuffer, commands->buffer());
  MOKA_TRY(commands->submit());
  piece.commands = std::move(commands);
  return {};
}

Status StagingRing::write(const VulkanBuffer& to, size_t offset, const void* from, size_t bytes) {
  std::lock_guard lock(mutex_);
  for (size_t at = 0; at < bytes; at += kPieceBytes) {
    Piece& p = *MOKA_TRY(take());
    const size_t n = std::min(kPieceBytes, bytes - at);
    std::memcpy(p.staging->mapped(), static_cast<const std::byte*>(from) + at, n);
    p.buffer = to.handle();
    MOKA_TRY(start(p, p.staging->handle(), to.handle(), {0, offset + at, n}));
  }
  return {};
}

Status StagingRing::read(const VulkanBuffer& from, size_t offset, void* to, size_t bytes) {
  std::lock_guard lock(mutex_);
  for (size_t at = 0; at < bytes; at += kPieceBytes) {
    Piece& p = *MOKA_TRY(take());
    const size_t n = std::min(kPieceBytes, bytes - at);
    p.buffer = from.handle();
    p.to = static_cast<std::byte*>(to) + at;
    p.bytes = n;
    MOKA_TRY(start(p, from.handle(), p.staging->handle(), {offset + at, 0, n}));
  }
  Status all;
  for (Piece& p : pieces_)
    if (p.to != nullptr)
      if (Status done = settle(p); !done.ok()) all = std::move(done);
  return all;
}

}  // namespace moka::devices::vulkan
