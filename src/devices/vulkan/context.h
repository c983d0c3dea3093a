#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "devices/gpu/features.h"
#include "devices/vulkan/api.h"

/// The Vulkan device of a process.
///
///     Context     instance, device and queue, and what the driver can do
///     Pipelines   compiled shaders, made once per process (pipelines.h)
///     Memory, Queue, Submission   the contract of kernel/memory.h (memory.h, queue.h)
///     record_commands   what devices/gpu records, in a command buffer (commands.h)
namespace moka::devices::vulkan {

class Pipelines;

/// What a driver says of a card.
struct Features : gpu::Features {
  uint32_t vendor = 0;
  std::array<uint8_t, 16> cache_uuid{};  ///< identifies the driver's compiler
  bool int8 = false;                     ///< arithmetic in int8
  bool unified = false;                  ///< the host can write all of the device's memory at full speed
  bool subgroup_arithmetic = false;
  uint64_t max_allocation = 0;   ///< maxMemoryAllocationSize, bytes
  uint32_t max_invocations = 0;  ///< of a workgroup
};

/// Made by the first call of get(). Thread-safe: `queue_mutex_` guards the queue.
class Context {
 public:
  /// The context of this process. Errors: unsupported, with the reason; device_lost in a child made by fork whose
  /// parent uses hardware. If the driver computes on the CPU, such a child gets a context of its own.
  static Result<std::shared_ptr<Context>> get();
  /// Whether there is a device, asked once; the reason when there is none.
  static Result<Features> probe();
  ~Context();
  Context(const Context&) = delete;

  const Api& api() const { return api_; }
  VkDevice device() const { return device_; }
  const Features& features() const { return features_; }
  Pipelines& pipelines() const { return *pipelines_; }
  /// Whether this process made the context. A child made by fork must not use its handles.
  bool is_own() const;

  Status submit(VkCommandBuffer commands, VkFence fence);
  /// Index of a memory type among `allowed` that has all of `wanted`; -1: none.
  int memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted) const;
  /// Number of errors and warnings from the validation layer, which MOKA_VULKAN_VALIDATION=1 loads.
  uint64_t validation_messages() const { return messages_; }
  bool validates() const { return messenger_ != VK_NULL_HANDLE; }

 private:
  Context() = default;
  static Result<std::shared_ptr<Context>> make();
  Status make_instance();
  Status choose_device();
  Status make_device();

  Api api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_;
  VkPhysicalDeviceMemoryProperties memory_{};
  Features features_;
  std::unique_ptr<Pipelines> pipelines_;
  std::atomic<uint64_t> messages_ = 0;
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
