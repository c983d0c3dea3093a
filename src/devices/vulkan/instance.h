// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "devices/gpu/features.h"
#include "devices/vulkan/api.h"

namespace moka::devices::vulkan {

/// What a driver says of a card.
struct Features : gpu::Features {
  std::string identity;  ///< the card, its driver and what of it is used
  uint32_t vendor = 0;
  std::array<uint8_t, 16> cache_uuid{};  ///< identifies the driver's compiler
  bool int8 = false;                     ///< arithmetic in int8
  bool unified = false;                  ///< the host can write all of the device's memory at full speed
  bool subgroup_arithmetic = false;
  uint64_t max_allocation = 0;   ///< maxMemoryAllocationSize, bytes
  uint64_t host_pointers = 0;    ///< alignment of host memory that buffers may have, bytes; 0: none
  uint32_t max_invocations = 0;  ///< of a workgroup
  uint32_t timestamp_bits = 0;   ///< of the queue's timestamps that are valid; 0: it has none
  double timestamp_period = 0;   ///< nanoseconds of one tick
  bool calibrated = false;       ///< the driver says what a timestamp is on the host's monotonic clock
};

/// A card that a driver lists.
struct Card {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  uint32_t family = 0;  ///< of queues
  VkPhysicalDeviceMemoryProperties memory{};
  Features features;
  std::vector<const char*> extensions;  ///< for features that its version of Vulkan does not have

  /// Index of a memory type among `allowed` that has all of `wanted`; -1: none.
  int memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted) const;
};

/// The loader's instance of a process, and all cards that compute, the best first: hardware before drivers that compute
/// on the CPU.
class Instance {
 public:
  /// Errors: unsupported, with the reason.
  static Result<std::shared_ptr<Instance>> make();
  ~Instance();
  Instance(const Instance&) = delete;

  const Api& api() const { return api_; }
  std::span<const Card> cards() const { return cards_; }
  /// Number of errors and warnings from the validation layer, which MOKA_VULKAN_VALIDATION=1 loads.
  uint64_t validation_messages() const { return messages_; }
  bool validates() const { return messenger_ != VK_NULL_HANDLE; }

 private:
  Instance() = default;
  Status open();
  Status listen();
  Status list_cards();

  Api api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<Card> cards_;
  std::atomic<uint64_t> messages_ = 0;
  int process_ = 0;
};

/// Reads what the driver says of a card, but for its queues.
Result<Card> read_card(const Api& api, VkPhysicalDevice handle);

}  // namespace moka::devices::vulkan
