// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/instance.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace moka::devices::vulkan {

namespace {

bool wants_validation() {
  const char* v = std::getenv("MOKA_VULKAN_VALIDATION");
  return v != nullptr && std::string_view(v) == "1";
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* count) {
  static_cast<std::atomic<uint64_t>*>(count)->fetch_add(1);
  std::fprintf(stderr, "vulkan: %s\n", data->pMessage);
  return VK_FALSE;
}

/// A family of queues that computes; -1: none. One that only computes runs beside what the machine draws.
int computing_family(const Api& api, VkPhysicalDevice card, uint32_t& timestamp_bits) {
  uint32_t n = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(card, &n, nullptr);
  std::vector<VkQueueFamilyProperties> queues(n);
  api.GetPhysicalDeviceQueueFamilyProperties(card, &n, queues.data());
  int family = -1;
  for (uint32_t i = 0; i < n; i++) {
    if ((queues[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if (family < 0 || (queues[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0) family = static_cast<int>(i);
  }
  if (family >= 0) timestamp_bits = queues[static_cast<size_t>(family)].timestampValidBits;
  return family;
}

/// The best kind first.
int order_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 4;
    default: return 3;
  }
}

}  // namespace

Result<std::shared_ptr<Instance>> Instance::make() {
  std::shared_ptr<Instance> made(new Instance);
  made->process_ = getpid();
  MOKA_TRY(made->api_.open());
  MOKA_TRY(made->open());
  MOKA_TRY(made->list_cards());
  return made;
}

Instance::~Instance() {
  if (process_ != getpid() || instance_ == VK_NULL_HANDLE || api_.DestroyInstance == nullptr) return;
  if (messenger_ != VK_NULL_HANDLE) api_.DestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  api_.DestroyInstance(instance_, nullptr);
}

Status Instance::open() {
  uint32_t version = 0;
  MOKA_VK(api_, EnumerateInstanceVersion, &version);
  if (version < VK_API_VERSION_1_1) return fail(ErrorCode::unsupported, "a Vulkan loader older than 1.1");
  VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  app.pApplicationName = app.pEngineName = "moka";
  app.apiVersion = std::min<uint32_t>(version, VK_API_VERSION_1_3);
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &app;
  const char* layer = "VK_LAYER_KHRONOS_validation";
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  const bool validate = wants_validation();
  if (validate) {
    info.enabledLayerCount = info.enabledExtensionCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.ppEnabledExtensionNames = &extension;
  }
  const VkResult made = api_.CreateInstance(&info, nullptr, &instance_);
  if (made == VK_ERROR_INCOMPATIBLE_DRIVER) return fail(ErrorCode::unsupported, "no Vulkan driver");
  if (made == VK_ERROR_LAYER_NOT_PRESENT)
    return fail(ErrorCode::unsupported, "MOKA_VULKAN_VALIDATION=1 without ", layer);
  if (made != VK_SUCCESS) return fail(ErrorCode::unsupported, "vkCreateInstance: ", to_string(made));
  MOKA_TRY(api_.load_instance(instance_));
  return validate ? listen() : Status();
}

/// Counts and prints what the validation layer says.
Status Instance::listen() {
  if (api_.CreateDebugUtilsMessengerEXT == nullptr) return {};
  VkDebugUtilsMessengerCreateInfoEXT debug{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  debug.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
  debug.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  debug.pfnUserCallback = on_message;
  debug.pUserData = &messages_;
  MOKA_VK(api_, CreateDebugUtilsMessengerEXT, instance_, &debug, nullptr, &messenger_);
  return {};
}

Status Instance::list_cards() {
  uint32_t n = 0;
  MOKA_VK(api_, EnumeratePhysicalDevices, instance_, &n, nullptr);
  std::vector<VkPhysicalDevice> all(n);
  MOKA_VK(api_, EnumeratePhysicalDevices, instance_, &n, all.data());
  std::vector<std::pair<int, Card>> found;
  for (VkPhysicalDevice d : all) {
    VkPhysicalDeviceProperties2 p{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    api_.GetPhysicalDeviceProperties2(d, &p);
    uint32_t timestamp_bits = 0;
    const int family = computing_family(api_, d, timestamp_bits);
    if (p.properties.apiVersion < VK_API_VERSION_1_1 || family < 0) continue;
    Card card = MOKA_TRY(read_card(api_, d));
    card.family = static_cast<uint32_t>(family);
    card.features.timestamp_bits = card.features.timestamp_period > 0 ? timestamp_bits : 0;
    const bool software = card.features.is_processor;
    found.emplace_back(order_of(software ? VK_PHYSICAL_DEVICE_TYPE_CPU : p.properties.deviceType), std::move(card));
  }
  if (found.empty()) return fail(ErrorCode::unsupported, "no Vulkan 1.1 device that computes");
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [order, card] : found) cards_.push_back(std::move(card));
  return {};
}

}  // namespace moka::devices::vulkan
