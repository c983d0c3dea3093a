// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/pipelines.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/replace_file.h"

namespace moka::devices::vulkan {

Result<std::unique_ptr<Pipelines>> Pipelines::make(const Context& c) {
  std::unique_ptr<Pipelines> p(new Pipelines(c));
  for (int n = 1; n <= gpu::kMostBindings; n++) {
    const auto at = static_cast<size_t>(n);
    std::vector<VkDescriptorSetLayoutBinding> bindings(at);
    for (uint32_t i = 0; i < static_cast<uint32_t>(n); i++)
      bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = static_cast<uint32_t>(n);
    set.pBindings = bindings.data();
    MOKA_VK(c.api(), CreateDescriptorSetLayout, c.device(), &set, nullptr, &p->set_layouts_[at]);
    const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, gpu::kMostParameterBytes};
    VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &p->set_layouts_[at];
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &push;
    MOKA_VK(c.api(), CreatePipelineLayout, c.device(), &layout, nullptr, &p->layouts_[at]);
  }
  VkPipelineCacheCreateInfo cache{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  MOKA_VK(c.api(), CreatePipelineCache, c.device(), &cache, nullptr, &p->cache_);
  return p;
}

Pipelines::~Pipelines() {
  const Api& api = context_.api();
  for (auto& [key, made] : made_)
    if (made.get()->ok()) api.DestroyPipeline(context_.device(), **made.get(), nullptr);
  for (VkPipelineLayout l : layouts_) api.DestroyPipelineLayout(context_.device(), l, nullptr);
  for (VkDescriptorSetLayout l : set_layouts_) api.DestroyDescriptorSetLayout(context_.device(), l, nullptr);
  api.DestroyPipelineCache(context_.device(), cache_, nullptr);
}

size_t Pipelines::count() const {
  std::lock_guard lock(mutex_);
  return made_.size();
}

Result<VkPipeline> Pipelines::create(const gpu::Specialized& key) {
  const Api& api = context_.api();
  VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  const auto& shader = static_cast<const Shader&>(*key.code);
  code.codeSize = shader.code.size_bytes();
  code.pCode = shader.code.data();
  VkShaderModule module = VK_NULL_HANDLE;
  MOKA_VK(api, CreateShaderModule, context_.device(), &code, nullptr, &module);
  std::vector<VkSpecializationMapEntry> entries(key.constants.size());
  for (uint32_t i = 0; i < entries.size(); i++) entries[i] = {i, i * 4, 4};
  const VkSpecializationInfo constants{static_cast<uint32_t>(entries.size()), entries.data(), key.constants.size() * 4,
                                       key.constants.data()};
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  info.layout = layout(shader.bindings);
  VkPipeline pipeline = VK_NULL_HANDLE;
  std::shared_lock lock(cache_mutex_);
  const VkResult r = api.CreateComputePipelines(context_.device(), cache_, 1, &info, nullptr, &pipeline);
  lock.unlock();
  api.DestroyShaderModule(context_.device(), module, nullptr);
  if (r != VK_SUCCESS) return std::move(error_of(r, "vkCreateComputePipelines")).in(shader.name);
  return pipeline;
}

Result<std::vector<VkPipeline>> Pipelines::get(std::span<const gpu::Specialized> keys) {
  std::vector<gpu::Specialized> mine;
  std::vector<std::promise<std::shared_ptr<Result<VkPipeline>>>> promises;
  std::vector<Made> wanted;
  {
    std::lock_guard lock(mutex_);
    for (const gpu::Specialized& k : keys) {
      auto [it, is_new] = made_.try_emplace(k);
      if (is_new) {
        mine.push_back(k);
        it->second = promises.emplace_back().get_future().share();
      }
      wanted.push_back(it->second);
    }
  }
  const size_t workers = std::min<size_t>(mine.size(), std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8));
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < mine.size(); i = next++) {
      auto made = std::make_shared<Result<VkPipeline>>(create(mine[i]));
      if (!made->ok()) {
        // The next caller tries again.
        std::lock_guard lock(mutex_);
        made_.erase(mine[i]);
      }
      promises[i].set_value(std::move(made));
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < workers; i++) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  std::vector<VkPipeline> all;
  for (const Made& m : wanted) {
    const Result<VkPipeline>& made = *m.get();
    if (!made.ok()) return fail(made.error().code(), made.error().to_string());
    all.push_back(*made);
  }
  return all;
}

Status Pipelines::read_cache(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  // Drivers ignore what is not theirs, but not all of them notice an end that is missing.
  VkPipelineCacheHeaderVersionOne header{};
  if (bytes.size() < sizeof header) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.headerVersion != VK_PIPELINE_CACHE_HEADER_VERSION_ONE || header.vendorID != context_.features().vendor ||
      !std::equal(std::begin(header.pipelineCacheUUID), std::end(header.pipelineCacheUUID),
                  context_.features().cache_uuid.begin()))
    return {};
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = bytes.size();
  info.pInitialData = bytes.data();
  VkPipelineCache read = VK_NULL_HANDLE;
  MOKA_VK(context_.api(), CreatePipelineCache, context_.device(), &info, nullptr, &read);
  VkResult merged;
  {
    std::unique_lock lock(cache_mutex_);
    merged = context_.api().MergePipelineCaches(context_.device(), cache_, 1, &read);
  }
  context_.api().DestroyPipelineCache(context_.device(), read, nullptr);
  if (merged != VK_SUCCESS) return error_of(merged, "vkMergePipelineCaches");
  return {};
}

std::string Pipelines::file_in(const std::string& folder) const {
  std::string uuid;
  for (const uint8_t b : context_.features().cache_uuid)
    for (const int digit : {b >> 4, b & 15}) uuid += "0123456789abcdef"[digit];
  return cat(folder, "/pipelines-", uuid, ".pipelines");
}

Status Pipelines::read_folder(const std::string& folder) {
  {
    std::lock_guard lock(mutex_);
    if (!written_.try_emplace(folder, made_.size()).second) return {};
  }
  return read_cache(file_in(folder));
}

Status Pipelines::write_folder(const std::string& folder) {
  {
    std::lock_guard lock(mutex_);
    size_t& written = written_[folder];
    if (made_.size() <= written) return {};
    written = made_.size();
  }
  return write_cache(file_in(folder));
}

Status Pipelines::write_cache(const std::string& path) const {
  std::unique_lock lock(cache_mutex_);
  size_t bytes = 0;
  MOKA_VK(context_.api(), GetPipelineCacheData, context_.device(), cache_, &bytes, nullptr);
  std::vector<char> data(bytes);
  MOKA_VK(context_.api(), GetPipelineCacheData, context_.device(), cache_, &bytes, data.data());
  lock.unlock();
  const std::span<const std::byte> part = std::as_bytes(std::span(data).first(bytes));
  MOKA_TRY_IN(replace_file(path, OutputKind::pipelines, {&part, 1}, false), "pipeline cache");
  return {};
}

}  // namespace moka::devices::vulkan
