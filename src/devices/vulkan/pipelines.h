// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <future>
#include <map>
#include <shared_mutex>

#include "devices/vulkan/context.h"
#include "devices/vulkan/shader.h"

namespace moka::devices::vulkan {

/// Pipelines, each made once per process and shared by all submissions. Thread-safe.
class Pipelines {
 public:
  static Result<std::unique_ptr<Pipelines>> make(const Context& context);
  ~Pipelines();

  /// Returns a pipeline for each key. Compiles missing pipelines in parallel. If several callers need the same
  /// pipeline, one compiles it and the others wait.
  Result<std::vector<VkPipeline>> get(std::span<const gpu::Specialized> keys);
  /// The layout of a kernel with that many storage buffers (bindings 0..n-1 of set 0) and gpu::kMostParameterBytes of
  /// push constants, which every driver supports.
  VkPipelineLayout layout(int bindings) const { return layouts_[static_cast<size_t>(bindings)]; }
  VkDescriptorSetLayout set_layout(int bindings) const { return set_layouts_[static_cast<size_t>(bindings)]; }
  size_t count() const;

  /// Reads or writes the driver's cache of compiled shaders as a file. A file of another driver is ignored. Writing
  /// replaces the file atomically.
  Status read_cache(const std::string& path);
  Status write_cache(const std::string& path) const;
  /// The same for a folder with a file for each driver. Reads the file once, and writes it only if shaders were
  /// compiled since.
  Status read_folder(const std::string& folder);
  Status write_folder(const std::string& folder);

 private:
  explicit Pipelines(const Context& context) : context_(context) {}
  using Made = std::shared_future<std::shared_ptr<Result<VkPipeline>>>;
  Result<VkPipeline> create(const gpu::Specialized& key);
  std::string file_in(const std::string& folder) const;

  const Context& context_;  // owns this object
  std::array<VkDescriptorSetLayout, gpu::kMostBindings + 1> set_layouts_{};
  std::array<VkPipelineLayout, gpu::kMostBindings + 1> layouts_{};
  mutable std::mutex mutex_;
  std::map<gpu::Specialized, Made> made_;
  std::map<std::string, size_t> written_;  ///< by folder: number of pipelines when its file was last read or written
  mutable std::shared_mutex cache_mutex_;  ///< threads that compile hold it shared
  VkPipelineCache cache_ = VK_NULL_HANDLE;
};

}  // namespace moka::devices::vulkan
