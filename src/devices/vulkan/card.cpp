// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "devices/vulkan/instance.h"

namespace moka::devices::vulkan {

namespace {

/// Some layers hand software drivers on under another type.
bool is_processor(const VkPhysicalDeviceProperties& p) {
  const std::string_view name = p.deviceName;
  return p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU || name.find("llvmpipe") != name.npos ||
         name.find("SwiftShader") != name.npos;
}

template <size_t N>
std::string hex_of(const uint8_t (&bytes)[N]) {
  std::string text;
  for (const uint8_t b : bytes)
    for (const int digit : {b >> 4, b & 15}) text += "0123456789abcdef"[digit];
  return text;
}

/// Settings of the environment overrule what the driver says.
void overrule(Features& f) {
  const auto is = [](const char* name, std::string_view value) {
    const char* v = std::getenv(name);
    return v != nullptr && v == value;
  };
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (is("MOKA_VULKAN_STAGING", "1")) f.unified = false;
  if (is("MOKA_VULKAN_SHARE", "0")) f.host_pointers = 0;
  if (is("MOKA_VULKAN_HALF", "0")) f.half = false;
  if (is_set("MOKA_VULKAN_LOCAL")) f.local_memory = is("MOKA_VULKAN_LOCAL", "1");
  if (is_set("MOKA_VULKAN_LARGE")) f.is_large = is("MOKA_VULKAN_LARGE", "1");
  if (is("MOKA_VULKAN_LANES", "0")) f.lanes = false;
  if (is_set("MOKA_VULKAN_FRAMES")) f.takes_frames = is("MOKA_VULKAN_FRAMES", "1");
  if (is("MOKA_VULKAN_TIMESTAMPS", "0")) f.timestamp_period = 0;
}

/// Whether the driver tells the time of a timestamp on the clock that std::chrono::steady_clock reads.
bool is_calibrated(const Api& api, VkPhysicalDevice card) {
  if (api.GetPhysicalDeviceCalibrateableTimeDomainsEXT == nullptr) return false;
  uint32_t n = 0;
  if (api.GetPhysicalDeviceCalibrateableTimeDomainsEXT(card, &n, nullptr) != VK_SUCCESS) return false;
  std::vector<VkTimeDomainEXT> domains(n);
  if (api.GetPhysicalDeviceCalibrateableTimeDomainsEXT(card, &n, domains.data()) != VK_SUCCESS) return false;
  const auto has = [&](VkTimeDomainEXT d) { return std::find(domains.begin(), domains.end(), d) != domains.end(); };
  return has(VK_TIME_DOMAIN_DEVICE_EXT) && has(VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT);
}

/// Whether buffers may have memory of the host.
void read_host_pointers(const Api& api, std::span<const VkExtensionProperties> offered, Card& card) {
  const auto is_it = [](const VkExtensionProperties& e) {
    return std::strcmp(e.extensionName, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) == 0;
  };
  if (std::none_of(offered.begin(), offered.end(), is_it)) return;
  card.extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT pointers{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceProperties2 p{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &pointers};
  api.GetPhysicalDeviceProperties2(card.handle, &p);
  card.features.host_pointers = pointers.minImportedHostPointerAlignment;
}

}  // namespace

int Card::memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted) const {
  for (uint32_t i = 0; i < memory.memoryTypeCount; i++)
    if ((allowed >> i & 1) != 0 && (memory.memoryTypes[i].propertyFlags & wanted) == wanted) return static_cast<int>(i);
  return -1;
}

Result<Card> read_card(const Api& api, VkPhysicalDevice handle) {
  Card card;
  card.handle = handle;
  Features& f = card.features;
  VkPhysicalDeviceIDProperties id{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, &id};
  VkPhysicalDeviceMaintenance3Properties largest{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &subgroup};
  VkPhysicalDeviceProperties2 p{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &largest};
  api.GetPhysicalDeviceProperties2(handle, &p);
  api.GetPhysicalDeviceMemoryProperties(handle, &card.memory);
  const VkPhysicalDeviceLimits& limits = p.properties.limits;

  uint32_t n = 0;
  MOKA_VK(api, EnumerateDeviceExtensionProperties, handle, nullptr, &n, nullptr);
  std::vector<VkExtensionProperties> offered(n);
  MOKA_VK(api, EnumerateDeviceExtensionProperties, handle, nullptr, &n, offered.data());
  const bool is_1_2 = p.properties.apiVersion >= VK_API_VERSION_1_2;
  auto offers = [&](const char* name) {
    const bool found = std::any_of(offered.begin(), offered.end(),
                                   [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
    if (found) card.extensions.push_back(name);
    return found;
  };
  auto has = [&](const char* name) { return is_1_2 || offers(name); };
  VkPhysicalDevice16BitStorageFeatures half{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  VkPhysicalDevice8BitStorageFeatures bytes{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  VkPhysicalDeviceShaderFloat16Int8Features small{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  VkPhysicalDeviceFeatures2 can{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &half};
  void** next = &half.pNext;
  auto link = [&](auto& s) {
    *next = &s;
    next = &s.pNext;
  };
  if (has(VK_KHR_8BIT_STORAGE_EXTENSION_NAME)) link(bytes);
  if (has(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME)) link(small);
  api.GetPhysicalDeviceFeatures2(handle, &can);

  f.name = p.properties.deviceName;
  f.vendor = p.properties.vendorID;
  std::copy_n(p.properties.pipelineCacheUUID, f.cache_uuid.size(), f.cache_uuid.begin());
  f.is_processor = is_processor(p.properties);
  f.takes_frames = !f.is_processor;
  f.is_large = p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  f.half_storage = half.storageBuffer16BitAccess;
  f.half = small.shaderFloat16;
  f.byte_storage = bytes.storageBuffer8BitAccess;
  f.int8 = small.shaderInt8;
  // The vendors whose shared memory is ordinary memory behind the same cache.
  constexpr uint32_t kArm = 0x13b5, kImagination = 0x1010, kIntel = 0x8086;
  f.local_memory = !f.is_processor && f.vendor != kArm && f.vendor != kImagination;
  f.subgroup = subgroup.subgroupSize;
  // Intel's drivers may divide a workgroup among smaller subgroups than they tell.
  f.whole_subgroups = f.vendor != kIntel;
  const bool computes = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  f.subgroup_arithmetic = computes && (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0;
  f.lanes = f.subgroup_arithmetic && subgroup.subgroupSize >= 8 && subgroup.subgroupSize <= 64;
  f.max_range = limits.maxStorageBufferRange;
  f.max_allocation = largest.maxMemoryAllocationSize;
  f.alignment = std::max<uint64_t>(64, limits.minStorageBufferOffsetAlignment);
  std::copy_n(limits.maxComputeWorkGroupCount, f.groups.size(), f.groups.begin());
  f.max_invocations = limits.maxComputeWorkGroupInvocations;
  f.max_shared = limits.maxComputeSharedMemorySize;
  const VkMemoryPropertyFlags all = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                    VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  f.unified = (f.is_processor || p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) &&
              card.memory_type(~0u, all) >= 0;
  read_host_pointers(api, offered, card);
  f.timestamp_period = static_cast<double>(limits.timestampPeriod);
  f.calibrated = is_calibrated(api, handle) && offers(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  overrule(f);
  f.identity = cat(f.name, f.half_storage ? "" : ", without float16", ", driver ", p.properties.driverVersion, " ",
                   hex_of(id.driverUUID), ", card ", hex_of(id.deviceUUID));
  return card;
}

}  // namespace moka::devices::vulkan
