// SPDX-License-Identifier: Apache-2.0
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <string>
#include <string_view>

#include "base/error.h"

/// Vulkan's functions, found while running: nothing links the loader, so that a machine without one runs all else.
namespace moka::devices::vulkan {

#define MOKA_VULKAN_GLOBAL(F)             \
  F(EnumerateInstanceVersion)             \
  F(EnumerateInstanceLayerProperties)     \
  F(EnumerateInstanceExtensionProperties) \
  F(CreateInstance)
#define MOKA_VULKAN_INSTANCE(F)             \
  F(DestroyInstance)                        \
  F(EnumeratePhysicalDevices)               \
  F(EnumerateDeviceExtensionProperties)     \
  F(GetPhysicalDeviceProperties2)           \
  F(GetPhysicalDeviceFeatures2)             \
  F(GetPhysicalDeviceMemoryProperties)      \
  F(GetPhysicalDeviceQueueFamilyProperties) \
  F(GetDeviceProcAddr)                      \
  F(CreateDevice)
#define MOKA_VULKAN_DEVICE(F)    \
  F(DestroyDevice)               \
  F(GetDeviceQueue)              \
  F(DeviceWaitIdle)              \
  F(QueueSubmit)                 \
  F(AllocateMemory)              \
  F(FreeMemory)                  \
  F(MapMemory)                   \
  F(CreateBuffer)                \
  F(DestroyBuffer)               \
  F(GetBufferMemoryRequirements) \
  F(BindBufferMemory)            \
  F(CreateFence)                 \
  F(DestroyFence)                \
  F(ResetFences)                 \
  F(WaitForFences)               \
  F(CreateShaderModule)          \
  F(DestroyShaderModule)         \
  F(CreatePipelineCache)         \
  F(DestroyPipelineCache)        \
  F(GetPipelineCacheData)        \
  F(MergePipelineCaches)         \
  F(CreateComputePipelines)      \
  F(DestroyPipeline)             \
  F(CreatePipelineLayout)        \
  F(DestroyPipelineLayout)       \
  F(CreateDescriptorSetLayout)   \
  F(DestroyDescriptorSetLayout)  \
  F(CreateDescriptorPool)        \
  F(DestroyDescriptorPool)       \
  F(AllocateDescriptorSets)      \
  F(UpdateDescriptorSets)        \
  F(CreateCommandPool)           \
  F(DestroyCommandPool)          \
  F(AllocateCommandBuffers)      \
  F(BeginCommandBuffer)          \
  F(EndCommandBuffer)            \
  F(CmdBindPipeline)             \
  F(CmdBindDescriptorSets)       \
  F(CmdPushConstants)            \
  F(CmdDispatch)                 \
  F(CmdCopyBuffer)               \
  F(CmdPipelineBarrier)          \
  F(CreateQueryPool)             \
  F(DestroyQueryPool)            \
  F(CmdResetQueryPool)           \
  F(CmdWriteTimestamp)           \
  F(GetQueryPoolResults)

struct Api {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define MOKA_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
  MOKA_VULKAN_GLOBAL(MOKA_VULKAN_MEMBER)
  MOKA_VULKAN_INSTANCE(MOKA_VULKAN_MEMBER)
  MOKA_VULKAN_DEVICE(MOKA_VULKAN_MEMBER)
  // VK_EXT_external_memory_host; nullptr without it.
  PFN_vkGetMemoryHostPointerPropertiesEXT GetMemoryHostPointerPropertiesEXT = nullptr;
  // VK_EXT_debug_utils; loaded with validation only.
  PFN_vkCreateDebugUtilsMessengerEXT CreateDebugUtilsMessengerEXT = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT DestroyDebugUtilsMessengerEXT = nullptr;
  // VK_EXT_calibrated_timestamps; null where a driver has none.
  PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT GetPhysicalDeviceCalibrateableTimeDomainsEXT = nullptr;
  PFN_vkGetCalibratedTimestampsEXT GetCalibratedTimestampsEXT = nullptr;
#undef MOKA_VULKAN_MEMBER

  /// Opens libvulkan.so.1. Error: unsupported, when there is none or it is older than Vulkan 1.1.
  Status open();
  Status load_instance(VkInstance instance);
  Status load_device(VkDevice device);
};

/// "VK_ERROR_DEVICE_LOST".
std::string_view to_string(VkResult result);
/// device_lost, out_of_budget or internal: "vkQueueSubmit: VK_ERROR_DEVICE_LOST".
Error error_of(VkResult result, std::string_view call);

}  // namespace moka::devices::vulkan

/// Returns the error of a Vulkan call from the enclosing function: `MOKA_VK(api, QueueSubmit, queue, 1, &info, fence)`.
#define MOKA_VK(api, function, ...)                                                    \
  do {                                                                                 \
    if (const VkResult moka_vk_ = (api).function(__VA_ARGS__); moka_vk_ != VK_SUCCESS) \
      return ::moka::devices::vulkan::error_of(moka_vk_, "vk" #function);              \
  } while (false)
