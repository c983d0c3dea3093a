// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

#include "devices/vulkan/instance.h"

/// Vulkan in a process.
///
///     Instance    the loader, and what its drivers say of each card (instance.h)
///     Context     a card: its device and its queue
///     Pipelines   compiled shaders, made once per process and card (pipelines.h)
///     Memory, Queue, Submission   the contract of kernel/memory.h (memory.h, queue.h)
///     record_commands   what devices/gpu records, in a command buffer (commands.h)
namespace moka::devices::vulkan {

class Pipelines;

/// A card as this process uses it. Made by the first call of get(). Thread-safe: `queue_mutex_` guards the queue.
class Context {
 public:
  /// The context of this process for a card, by its place among Instance::cards(). Errors: unsupported, with the
  /// reason; device_lost in a child made by fork whose parent may use hardware. If all cards of the machine are drivers
  /// that compute on the CPU, such a child gets contexts of its own.
  static Result<std::shared_ptr<Context>> get(size_t card = 0);
  /// What the card can do if it can be used, asked once; the reason when it cannot.
  static Result<Features> probe(size_t card = 0);
  /// How many cards there are, asked once.
  static size_t count();
  ~Context();
  Context(const Context&) = delete;

  const Api& api() const { return api_; }
  const Instance& instance() const { return *instance_; }
  VkDevice device() const { return device_; }
  const Features& features() const { return card_.features; }
  Pipelines& pipelines() const { return *pipelines_; }
  /// Whether this process made the context. A child made by fork must not use its handles.
  bool is_own() const;

  Status submit(VkCommandBuffer commands, VkFence fence);
  int memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted) const { return card_.memory_type(allowed, wanted); }

 private:
  Context(std::shared_ptr<Instance> instance, const Card& card);
  static Result<std::shared_ptr<Context>> make(std::shared_ptr<Instance> instance, size_t card);
  Status make_device();

  const std::shared_ptr<Instance> instance_;
  const Card& card_;  // of instance_
  Api api_;           // with the functions of device_
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_;
  std::unique_ptr<Pipelines> pipelines_;
  int process_ = 0;
  friend class CommandPool;
};

/// A command buffer with its own pool, so that threads can record at the same time.
class CommandPool {
 public:
  static Result<std::unique_ptr<CommandPool>> make(std::shared_ptr<Context> context);
  ~CommandPool();
  VkCommandBuffer buffer() const { return buffer_; }
  VkFence fence() const { return fence_; }
  /// Starts the commands.
  Status submit();
  /// Returns when the commands have run.
  Status wait();

 private:
  explicit CommandPool(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  std::shared_ptr<Context> context_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer buffer_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  bool running_ = false;
};

}  // namespace moka::devices::vulkan
