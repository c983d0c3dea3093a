#pragma once

#include <array>
#include <future>
#include <map>
#include <shared_mutex>

#include "devices/vulkan/context.h"
#include "devices/vulkan/shader.h"

namespace moka::devices::vulkan {

/// A shader and the values of its specialization constants, which are numbered from 0.
struct PipelineKey {
  const Shader* shader = nullptr;
  std::vector<uint32_t> constants;
  auto operator<=>(const PipelineKey&) const = default;
};

/// Pipelines, each made once per process and shared by all submissions. Thread-safe.
class Pipelines {
 public:
  static constexpr int kMostBindings = 8;
  static constexpr uint32_t kPushBytes = 128;  ///< what every driver has

  static Result<std::unique_ptr<Pipelines>> make(const Context& context);
  ~Pipelines();

  /// Makes those that are missing, several at a time. Callers that need the same one wait for the first of them.
  Result<std::vector<VkPipeline>> get(std::span<const PipelineKey> keys);
  /// The layout of a kernel with that many storage buffers (bindings 0..n-1 of set 0) and kPushBytes of push constants.
  VkPipelineLayout layout(int bindings) const { return layouts_[static_cast<size_t>(bindings)]; }
  VkDescriptorSetLayout set_layout(int bindings) const { return set_layouts_[static_cast<size_t>(bindings)]; }
  size_t count() const;

  /// The driver's cache of compiled shaders, as a file: what another driver wrote is left unread. Writing replaces the
  /// file in one step.
  Status read_cache(const std::string& path);
  Status write_cache(const std::string& path) const;
  /// The same in a folder, with a file for each driver: read once, written when something was compiled since.
  Status read_folder(const std::string& folder);
  Status write_folder(const std::string& folder);

 private:
  explicit Pipelines(const Context& context) : context_(context) {}
  using Made = std::shared_future<std::shared_ptr<Result<VkPipeline>>>;
  Result<VkPipeline> create(const PipelineKey& key);
  std::string file_in(const std::string& folder) const;

  const Context& context_;  // which owns it
  std::array<VkDescriptorSetLayout, kMostBindings + 1> set_layouts_{};
  std::array<VkPipelineLayout, kMostBindings + 1> layouts_{};
  mutable std::mutex mutex_;
  std::map<PipelineKey, Made> made_;
  std::map<std::string, size_t> written_;  ///< by folder, how many there were when its file was read or written
  mutable std::shared_mutex cache_mutex_;  ///< shared by those who compile
  VkPipelineCache cache_ = VK_NULL_HANDLE;
};

}  // namespace moka::devices::vulkan
