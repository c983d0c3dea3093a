// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "devices/vulkan/context.h"
#include "kernel/capture.h"

namespace moka::devices::vulkan {

/// Timestamps of a command buffer: one before its commands, and one after each.
class Stamps {
 public:
  /// nullptr: the queue has none.
  static Result<std::unique_ptr<Stamps>> make(std::shared_ptr<Context> context, size_t commands);
  ~Stamps();
  Stamps(const Stamps&) = delete;

  /// Records what begins the timestamps: the commands that follow are the first to be timed.
  void begin(VkCommandBuffer to);
  /// Records that one more command is complete.
  void add(VkCommandBuffer to);
  /// When each command ran. The submission was waited for at `waited`, nanoseconds of the steady clock.
  std::vector<kernel::CommandTime> read(int64_t waited) const;

 private:
  explicit Stamps(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  const std::shared_ptr<Context> context_;
  VkQueryPool pool_ = VK_NULL_HANDLE;
  uint32_t count_ = 0, next_ = 0;
};

/// How the timestamps of the card are. Measures the overhead once per context. nullopt: it has none.
Result<std::optional<kernel::TimestampFacts>> timestamp_facts(const std::shared_ptr<Context>& context);

}  // namespace moka::devices::vulkan
