#include "devices/vulkan/memory.h"

#include <algorithm>
#include <cstring>

namespace moka::devices::vulkan {

using kernel::Buffer;

Result<std::shared_ptr<VulkanBuffer>> VulkanBuffer::make(std::shared_ptr<Context> context, size_t bytes, Use use) {
  std::shared_ptr<VulkanBuffer> b(new VulkanBuffer(std::move(context), bytes));
  const Context& c = *b->context_;
  const size_t size = std::max<size_t>(bytes, 4);
  if (c.features().max_allocation != 0 && size > c.features().max_allocation)
    return fail(ErrorCode::out_of_budget, "device 'vulkan': a buffer of ", bytes, " bytes, more than its driver's ",
                c.features().max_allocation, " (maxMemoryAllocationSize)");
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = (size + 3) / 4 * 4;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (use == Use::device) info.usage |= VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  MOKA_VK(c.api(), CreateBuffer, c.device(), &info, nullptr, &b->buffer_);
  VkMemoryRequirements needs{};
  c.api().GetBufferMemoryRequirements(c.device(), b->buffer_, &needs);

  const VkMemoryPropertyFlags seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags cached = seen | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  const bool map = use == Use::staging || c.features().unified;
  int type = -1;
  if (use == Use::staging)
    type = c.memory_type(needs.memoryTypeBits, cached);
  else
    type = c.memory_type(needs.memoryTypeBits, map ? cached | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
                                                   : VkMemoryPropertyFlags{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT});
  if (type < 0) type = c.memory_type(needs.memoryTypeBits, map ? seen : 0);
  if (type < 0) return fail(ErrorCode::out_of_budget, "device 'vulkan': no memory of a fitting kind");
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = static_cast<uint32_t>(type);
  if (const VkResult r = c.api().AllocateMemory(c.device(), &allocate, nullptr, &b->memory_); r != VK_SUCCESS)
    return std::move(error_of(r, "vkAllocateMemory")).in(cat(bytes, " bytes"));
  MOKA_VK(c.api(), BindBufferMemory, c.device(), b->buffer_, b->memory_, 0);
  if (map) {
    void* at = nullptr;
    MOKA_VK(c.api(), MapMemory, c.device(), b->memory_, 0, VK_WHOLE_SIZE, 0, &at);
    b->mapped_ = static_cast<std::byte*>(at);
  }
  return b;
}

VulkanBuffer::~VulkanBuffer() {
  if (!context_->is_own()) return;
  context_->api().DestroyBuffer(context_->device(), buffer_, nullptr);
  context_->api().FreeMemory(context_->device(), memory_, nullptr);
}

size_t VulkanMemory::alignment() const {
  auto features = Context::probe();
  return features.ok() ? static_cast<size_t>(features->alignment) : 64;
}

Result<std::shared_ptr<Buffer>> VulkanMemory::allocate(size_t bytes) const {
  auto context = MOKA_TRY(Context::get());
  return std::shared_ptr<Buffer>(MOKA_TRY(VulkanBuffer::make(std::move(context), bytes, VulkanBuffer::Use::device)));
}

Status VulkanMemory::write(Buffer& to, size_t offset, const void* from, size_t bytes) const {
  auto& buffer = static_cast<VulkanBuffer&>(to);
  if (bytes == 0) return {};
  if (buffer.mapped() != nullptr) {
    std::memcpy(buffer.mapped() + offset, from, bytes);
    return {};
  }
  auto context = MOKA_TRY(Context::get());
  if (buffer.context() != context.get())
    return fail(ErrorCode::device_lost, "device 'vulkan': a buffer of the process that this one was forked from");
  // Pieces, so that large weights need little memory that the host sees.
  constexpr size_t kPiece = size_t{16} << 20;
  auto staging = MOKA_TRY(VulkanBuffer::make(context, std::min(bytes, kPiece), VulkanBuffer::Use::staging));
  const Api& api = context->api();
  for (size_t at = 0; at < bytes; at += kPiece) {
    const size_t n = std::min(kPiece, bytes - at);
    std::memcpy(staging->mapped(), static_cast<const std::byte*>(from) + at, n);
    auto commands = MOKA_TRY(CommandPool::make(context));
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    MOKA_VK(api, BeginCommandBuffer, commands->buffer(), &begin);
    const VkBufferCopy copy{0, offset + at, n};
    api.CmdCopyBuffer(commands->buffer(), staging->handle(), buffer.handle(), 1, &copy);
    VkMemoryBarrier after{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    after.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    after.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT;
    api.CmdPipelineBarrier(commands->buffer(), VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &after, 0,
                           nullptr, 0, nullptr);
    MOKA_VK(api, EndCommandBuffer, commands->buffer());
    MOKA_TRY(commands->submit());
    MOKA_TRY(commands->wait());
  }
  return {};
}

}  // namespace moka::devices::vulkan
