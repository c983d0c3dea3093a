// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/context.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "devices/vulkan/pipelines.h"

namespace moka::devices::vulkan {

namespace {

/// What this process has of Vulkan.
struct Holder {
  std::mutex mutex;
  std::shared_ptr<Instance> instance;
  std::map<size_t, std::shared_ptr<Context>> contexts;  // by card
  pid_t process = 0;
  ErrorCode code = ErrorCode::unsupported;  ///< why there is no instance
  std::string why;

  /// The instance of this process; nullptr: `why`.
  Instance* enter() {
    if (process != getpid()) {
      leave_parent();
      if (code == ErrorCode::device_lost) return nullptr;
      auto made = Instance::make();
      if (made.ok())
        instance = *made;
      else
        why = made.error().message();
    }
    return instance.get();
  }

 private:
  /// Begins anew in a child made by fork.
  void leave_parent() {
    process = getpid();
    if (!instance) return;
    // Drivers of hardware fail in a child, and what it tries can lose the device of its parent.
    const auto cards = instance->cards();
    const bool is_lost =
        std::any_of(cards.begin(), cards.end(), [](const Card& c) { return !c.features.is_processor; });
    // The handles belong to the parent and the locks of its driver may be held: they are left as they are.
    new std::shared_ptr<Instance>(std::move(instance));
    new std::map<size_t, std::shared_ptr<Context>>(std::move(contexts));
    instance = nullptr;
    contexts.clear();
    if (is_lost) {
      code = ErrorCode::device_lost;
      why = "a process forked from one that uses the GPU cannot use it; start processes by 'spawn'";
    }
  }
};

Holder& holder() {
  static auto* h = new Holder;
  return *h;
}

}  // namespace

Result<std::shared_ptr<Context>> Context::get(size_t card) {
  Holder& h = holder();
  std::lock_guard lock(h.mutex);
  if (h.enter() == nullptr) return fail(h.code, h.why);
  if (card >= h.instance->cards().size())
    return fail(ErrorCode::unsupported, "the drivers list ", h.instance->cards().size(), " cards");
  auto& context = h.contexts[card];
  if (!context) context = MOKA_TRY(make(h.instance, card));
  return context;
}

Result<Features> Context::probe(size_t card) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::map<size_t, Result<Features>>;
  const std::lock_guard lock(mutex);
  auto it = all.find(card);
  if (it == all.end()) {
    auto context = get(card);
    it = all.emplace(card, context.ok() ? Result<Features>((*context)->features())
                                        : Result<Features>(std::move(context.error())))
             .first;
  }
  if (!it->second.ok()) return fail(ErrorCode::unsupported, it->second.error().message());
  return *it->second;
}

size_t Context::count() {
  static const size_t n = [] {
    Holder& h = holder();
    std::lock_guard lock(h.mutex);
    return h.enter() == nullptr ? 0 : h.instance->cards().size();
  }();
  return n;
}

bool Context::is_own() const { return process_ == getpid(); }

Context::Context(std::shared_ptr<Instance> instance, const Card& card)
    : instance_(std::move(instance)), card_(card), api_(instance_->api()), process_(getpid()) {}

Result<std::shared_ptr<Context>> Context::make(std::shared_ptr<Instance> instance, size_t card) {
  const Card& chosen = instance->cards()[card];
  std::shared_ptr<Context> c(new Context(std::move(instance), chosen));
  MOKA_TRY(c->make_device());
  c->pipelines_ = MOKA_TRY(Pipelines::make(*c));
  return c;
}

Status Context::make_device() {
  // Only what shaders use is switched on.
  const Features& f = card_.features;
  VkPhysicalDevice16BitStorageFeatures use_half{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  use_half.storageBuffer16BitAccess = f.half_storage;
  VkPhysicalDevice8BitStorageFeatures use_bytes{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  use_bytes.storageBuffer8BitAccess = f.byte_storage;
  VkPhysicalDeviceShaderFloat16Int8Features use_small{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  use_small.shaderFloat16 = f.half;
  use_small.shaderInt8 = f.int8;
  VkPhysicalDeviceFeatures2 use{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &use_half};
  void** next = &use_half.pNext;
  auto link = [&](auto& s) {
    *next = &s;
    next = &s.pNext;
  };
  if (f.byte_storage) link(use_bytes);
  if (f.half || f.int8) link(use_small);

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = card_.family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &use};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(card_.extensions.size());
  info.ppEnabledExtensionNames = card_.extensions.data();
  MOKA_VK(api_, CreateDevice, card_.handle, &info, nullptr, &device_);
  MOKA_TRY(api_.load_device(device_));
  api_.GetDeviceQueue(device_, card_.family, 0, &queue_);
  return {};
}

Context::~Context() {
  if (!is_own() || device_ == VK_NULL_HANDLE) return;
  api_.DeviceWaitIdle(device_);
  pipelines_.reset();
  api_.DestroyDevice(device_, nullptr);
}

Status Context::submit(VkCommandBuffer commands, VkFence fence) {
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  std::lock_guard lock(queue_mutex_);
  MOKA_VK(api_, QueueSubmit, queue_, 1, &info, fence);
  return {};
}

Result<std::unique_ptr<CommandPool>> CommandPool::make(std::shared_ptr<Context> context) {
  std::unique_ptr<CommandPool> p(new CommandPool(std::move(context)));
  const Context& c = *p->context_;
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = c.card_.family;
  MOKA_VK(c.api(), CreateCommandPool, c.device(), &pool, nullptr, &p->pool_);
  VkCommandBufferAllocateInfo one{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  one.commandPool = p->pool_;
  one.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  one.commandBufferCount = 1;
  MOKA_VK(c.api(), AllocateCommandBuffers, c.device(), &one, &p->buffer_);
  VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  MOKA_VK(c.api(), CreateFence, c.device(), &fence, nullptr, &p->fence_);
  return p;
}

CommandPool::~CommandPool() {
  if (!context_->is_own()) return;
  (void)wait();
  context_->api().DestroyFence(context_->device(), fence_, nullptr);
  context_->api().DestroyCommandPool(context_->device(), pool_, nullptr);
}

Status CommandPool::submit() {
  if (!context_->is_own())
    return fail(ErrorCode::device_lost, "a submission of the process that this one was forked from");
  MOKA_VK(context_->api(), ResetFences, context_->device(), 1, &fence_);
  MOKA_TRY(context_->submit(buffer_, fence_));
  running_ = true;
  return {};
}

Status CommandPool::wait() {
  if (!running_ || !context_->is_own()) return {};
  running_ = false;
  MOKA_VK(context_->api(), WaitForFences, context_->device(), 1, &fence_, VK_TRUE, UINT64_MAX);
  return {};
}

}  // namespace moka::devices::vulkan
