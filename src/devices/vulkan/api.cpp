// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/api.h"

#include <dlfcn.h>

namespace moka::devices::vulkan {

Status Api::open() {
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(ErrorCode::unsupported, "libvulkan.so.1 not found");
  GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (GetInstanceProcAddr == nullptr)
    return fail(ErrorCode::unsupported, "libvulkan.so.1 without vkGetInstanceProcAddr");
#define MOKA_VULKAN_LOAD(name)                                                            \
  name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(VK_NULL_HANDLE, "vk" #name)); \
  if (name == nullptr) return fail(ErrorCode::unsupported, "libvulkan.so.1 without vk" #name);
  MOKA_VULKAN_GLOBAL(MOKA_VULKAN_LOAD)
#undef MOKA_VULKAN_LOAD
  return {};
}

Status Api::load_instance(VkInstance instance) {
#define MOKA_VULKAN_LOAD(name)                                                      \
  name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name)); \
  if (name == nullptr) return fail(ErrorCode::unsupported, "a Vulkan driver without vk" #name);
  MOKA_VULKAN_INSTANCE(MOKA_VULKAN_LOAD)
#undef MOKA_VULKAN_LOAD
  CreateDebugUtilsMessengerEXT = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      GetInstanceProcAddr(instance, "vkCreateDebugUtilsMessengerEXT"));
  DestroyDebugUtilsMessengerEXT = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      GetInstanceProcAddr(instance, "vkDestroyDebugUtilsMessengerEXT"));
  GetPhysicalDeviceCalibrateableTimeDomainsEXT = reinterpret_cast<PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT>(
      GetInstanceProcAddr(instance, "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT"));
  return {};
}

Status Api::load_device(VkDevice device) {
#define MOKA_VULKAN_LOAD(name)                                                  \
  name = reinterpret_cast<PFN_vk##name>(GetDeviceProcAddr(device, "vk" #name)); \
  if (name == nullptr) return fail(ErrorCode::unsupported, "a Vulkan driver without vk" #name);
  MOKA_VULKAN_DEVICE(MOKA_VULKAN_LOAD)
#undef MOKA_VULKAN_LOAD
  GetMemoryHostPointerPropertiesEXT = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
      GetDeviceProcAddr(device, "vkGetMemoryHostPointerPropertiesEXT"));
  GetCalibratedTimestampsEXT =
      reinterpret_cast<PFN_vkGetCalibratedTimestampsEXT>(GetDeviceProcAddr(device, "vkGetCalibratedTimestampsEXT"));
  return {};
}

std::string_view to_string(VkResult result) {
  switch (result) {
    case VK_SUCCESS: return "VK_SUCCESS";
    case VK_NOT_READY: return "VK_NOT_READY";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    case VK_INCOMPLETE: return "VK_INCOMPLETE";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_FRAGMENTED_POOL: return "VK_ERROR_FRAGMENTED_POOL";
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "VK_ERROR_OUT_OF_POOL_MEMORY";
    default: return "an unknown error";
  }
}

Error error_of(VkResult result, std::string_view call) {
  ErrorCode code = ErrorCode::internal;
  switch (result) {
    case VK_ERROR_DEVICE_LOST:
    case VK_ERROR_INITIALIZATION_FAILED: code = ErrorCode::device_lost; break;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_MEMORY_MAP_FAILED:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_OUT_OF_POOL_MEMORY: code = ErrorCode::out_of_budget; break;
    default: break;
  }
  return fail(code, call, ": ", to_string(result));
}

}  // namespace moka::devices::vulkan
