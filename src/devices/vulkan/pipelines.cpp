#include "devices/vulkan/pipelines.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

namespace moka::devices::vulkan {

Result<std::unique_ptr<Pipelines>> Pipelines::make(const Context& c) {
  std::unique_ptr<Pipelines> p(new Pipelines(c));
  for (int n = 1; n <= kMostBindings; n++) {
    const auto at = static_cast<size_t>(n);
    std::vector<VkDescriptorSetLayoutBinding> bindings(at);
    for (uint32_t i = 0; i < static_cast<uint32_t>(n); i++)
      bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = static_cast<uint32_t>(n);
    set.pBindings = bindings.data();
    MOKA_VK(c.api(), CreateDescriptorSetLayout, c.device(), &set, nullptr, &p->set_layouts_[at]);
    const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
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
  for (auto& [key, pipeline] : made_) api.DestroyPipeline(context_.device(), pipeline, nullptr);
  for (VkPipelineLayout l : layouts_) api.DestroyPipelineLayout(context_.device(), l, nullptr);
  for (VkDescriptorSetLayout l : set_layouts_) api.DestroyDescriptorSetLayout(context_.device(), l, nullptr);
  api.DestroyPipelineCache(context_.device(), cache_, nullptr);
}

size_t Pipelines::count() const {
  std::lock_guard lock(mutex_);
  return made_.size();
}

Result<VkPipeline> Pipelines::create(const PipelineKey& key) {
  const Api& api = context_.api();
  VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  code.codeSize = key.shader->code.size_bytes();
  code.pCode = key.shader->code.data();
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
  info.layout = layout(key.shader->bindings);
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult r = api.CreateComputePipelines(context_.device(), cache_, 1, &info, nullptr, &pipeline);
  api.DestroyShaderModule(context_.device(), module, nullptr);
  if (r != VK_SUCCESS) return std::move(error_of(r, "vkCreateComputePipelines")).in(key.shader->name);
  return pipeline;
}

Result<std::vector<VkPipeline>> Pipelines::get(std::span<const PipelineKey> keys) {
  std::vector<PipelineKey> missing;
  std::lock_guard lock(mutex_);
  for (const PipelineKey& k : keys)
    if (!made_.contains(k)) missing.push_back(k);
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  const size_t workers =
      std::min<size_t>(missing.size(), std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8));
  std::atomic<size_t> next = 0;
  std::vector<std::unique_ptr<Result<VkPipeline>>> results(missing.size());
  auto work = [&] {
    for (size_t i = next++; i < missing.size(); i = next++)
      results[i] = std::make_unique<Result<VkPipeline>>(create(missing[i]));
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < workers; i++) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  Status status;
  for (size_t i = 0; i < missing.size(); i++) {
    if (results[i]->ok())
      made_[missing[i]] = **results[i];
    else if (status.ok())
      status = std::move(results[i]->error());
  }
  MOKA_TRY(std::move(status));
  std::vector<VkPipeline> all;
  for (const PipelineKey& k : keys) all.push_back(made_.at(k));
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
  if (header.headerVersion != VK_PIPELINE_CACHE_HEADER_VERSION_ONE || header.vendorID != context_.features().vendor)
    return {};
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = bytes.size();
  info.pInitialData = bytes.data();
  VkPipelineCache read = VK_NULL_HANDLE;
  MOKA_VK(context_.api(), CreatePipelineCache, context_.device(), &info, nullptr, &read);
  std::lock_guard lock(mutex_);
  std::swap(read, cache_);
  context_.api().DestroyPipelineCache(context_.device(), read, nullptr);
  return {};
}

Status Pipelines::write_cache(const std::string& path) const {
  std::lock_guard lock(mutex_);
  size_t bytes = 0;
  MOKA_VK(context_.api(), GetPipelineCacheData, context_.device(), cache_, &bytes, nullptr);
  std::vector<char> data(bytes);
  MOKA_VK(context_.api(), GetPipelineCacheData, context_.device(), cache_, &bytes, data.data());
  const std::string part = cat(path, ".", getpid(), ".part");
  std::ofstream file(part, std::ios::binary);
  file.write(data.data(), static_cast<std::streamsize>(bytes));
  file.close();
  if (!file || std::rename(part.c_str(), path.c_str()) != 0) {
    std::remove(part.c_str());
    return fail(ErrorCode::io, "pipeline cache: cannot write '", path, "'");
  }
  return {};
}

}  // namespace moka::devices::vulkan
