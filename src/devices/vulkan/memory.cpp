// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/memory.h"

#include <algorithm>
#include <cstring>

#include "devices/vulkan/staging.h"

namespace moka::devices::vulkan {

using kernel::Buffer;

namespace {

constexpr const char* kForeign = "a buffer of the process that this one was forked from";

Result<std::shared_ptr<StagingRing>> ring_for(const VulkanBuffer& buffer, size_t card) {
  auto context = MOKA_TRY(Context::get(card));
  if (buffer.context() != context.get()) return fail(ErrorCode::device_lost, kForeign);
  return StagingRing::of(std::move(context));
}

}  // namespace

Result<std::shared_ptr<VulkanBuffer>> VulkanBuffer::make(std::shared_ptr<Context> context, size_t bytes, Use use) {
  std::shared_ptr<VulkanBuffer> b(new VulkanBuffer(std::move(context), bytes));
  const Context& c = *b->context_;
  const size_t size = std::max<size_t>(bytes, 4);
  if (c.features().max_allocation != 0 && size > c.features().max_allocation)
    return fail(ErrorCode::out_of_budget, "a buffer of ", bytes, " bytes, more than its driver's ",
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
  b->is_staged_ = !map;
  int type = -1;
  if (use == Use::staging)
    type = c.memory_type(needs.memoryTypeBits, cached);
  else
    type = c.memory_type(needs.memoryTypeBits, map ? cached | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
                                                   : VkMemoryPropertyFlags{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT});
  if (type < 0) type = c.memory_type(needs.memoryTypeBits, map ? seen : 0);
  if (type < 0) return fail(ErrorCode::out_of_budget, "no memory of a fitting kind");
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

Result<std::shared_ptr<VulkanBuffer>> VulkanBuffer::over(std::shared_ptr<Context> context,
                                                         std::shared_ptr<std::byte> host, size_t bytes) {
  std::shared_ptr<VulkanBuffer> b(new VulkanBuffer(std::move(context), bytes));
  const Context& c = *b->context_;
  const uint64_t alignment = c.features().host_pointers;
  if (!c.features().unified || alignment == 0 || c.api().GetMemoryHostPointerPropertiesEXT == nullptr)
    return fail(ErrorCode::unsupported, "a driver that takes no memory of the host");
  if (reinterpret_cast<uintptr_t>(host.get()) % alignment != 0 || bytes % alignment != 0)
    return fail(ErrorCode::unsupported, "memory of the host that is not aligned to ", alignment, " bytes");
  constexpr auto kPointer = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkMemoryHostPointerPropertiesEXT pointer{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  MOKA_VK(c.api(), GetMemoryHostPointerPropertiesEXT, c.device(), kPointer, host.get(), &pointer);
  const VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
                                                  kPointer};
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  MOKA_VK(c.api(), CreateBuffer, c.device(), &info, nullptr, &b->buffer_);
  VkMemoryRequirements needs{};
  c.api().GetBufferMemoryRequirements(c.device(), b->buffer_, &needs);
  const int type = c.memory_type(needs.memoryTypeBits & pointer.memoryTypeBits,
                                 VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  if (type < 0 || needs.size > bytes) return fail(ErrorCode::unsupported, "no memory of a kind that the host sees");
  const VkImportMemoryHostPointerInfoEXT from{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, nullptr, kPointer,
                                              host.get()};
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &from};
  allocate.allocationSize = bytes;
  allocate.memoryTypeIndex = static_cast<uint32_t>(type);
  MOKA_VK(c.api(), AllocateMemory, c.device(), &allocate, nullptr, &b->memory_);
  MOKA_VK(c.api(), BindBufferMemory, c.device(), b->buffer_, b->memory_, 0);
  b->mapped_ = host.get();
  b->host_ = std::move(host);
  return b;
}

VulkanBuffer::~VulkanBuffer() {
  if (!context_->is_own()) return;
  if (is_staged_) StagingRing::finish(*context_, buffer_);
  context_->api().DestroyBuffer(context_->device(), buffer_, nullptr);
  context_->api().FreeMemory(context_->device(), memory_, nullptr);
}

size_t VulkanMemory::alignment() const {
  auto features = Context::probe(card_);
  return features.ok() ? static_cast<size_t>(features->alignment) : 64;
}

Result<std::shared_ptr<Buffer>> VulkanMemory::allocate(size_t bytes) const {
  auto context = MOKA_TRY(Context::get(card_));
  return std::shared_ptr<Buffer>(MOKA_TRY(VulkanBuffer::make(std::move(context), bytes, VulkanBuffer::Use::device)));
}

size_t VulkanMemory::share_alignment() const {
  auto features = Context::probe(card_);
  return features.ok() && features->unified ? static_cast<size_t>(features->host_pointers) : 0;
}

Result<std::shared_ptr<Buffer>> VulkanMemory::share(std::shared_ptr<std::byte> owner, size_t bytes) const {
  auto context = MOKA_TRY(Context::get(card_));
  return std::shared_ptr<Buffer>(MOKA_TRY(VulkanBuffer::over(std::move(context), std::move(owner), bytes)));
}

std::byte* VulkanMemory::host_address(const Buffer& buffer) const {
  const auto& b = static_cast<const VulkanBuffer&>(buffer);
  return b.context()->is_own() ? b.mapped() : nullptr;
}

Status VulkanMemory::write(Buffer& to, size_t offset, const void* from, size_t bytes) const {
  auto& buffer = static_cast<VulkanBuffer&>(to);
  if (!buffer.context()->is_own()) return fail(ErrorCode::device_lost, kForeign);
  if (bytes == 0) return {};
  if (buffer.mapped() != nullptr) {
    std::memcpy(buffer.mapped() + offset, from, bytes);
    return {};
  }
  return MOKA_TRY(ring_for(buffer, card_))->write(buffer, offset, from, bytes);
}

Status VulkanMemory::read(const Buffer& from, size_t offset, void* to, size_t bytes) const {
  const auto& buffer = static_cast<const VulkanBuffer&>(from);
  if (!buffer.context()->is_own()) return fail(ErrorCode::device_lost, kForeign);
  if (bytes == 0) return {};
  if (buffer.mapped() != nullptr) {
    std::memcpy(to, buffer.mapped() + offset, bytes);
    return {};
  }
  return MOKA_TRY(ring_for(buffer, card_))->read(buffer, offset, to, bytes);
}

}  // namespace moka::devices::vulkan
