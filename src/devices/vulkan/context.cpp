#include "devices/vulkan/context.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "devices/vulkan/pipelines.h"

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

/// Real hardware first.
int order_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 4;
    default: return 3;
  }
}

/// Some layers hand software drivers on under another type.
bool is_processor(const VkPhysicalDeviceProperties& p) {
  const std::string_view name = p.deviceName;
  return p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU || name.find("llvmpipe") != name.npos ||
         name.find("SwiftShader") != name.npos;
}

/// The best kind first, in any case hardware before software.
int order_of(const VkPhysicalDeviceProperties& p) {
  return is_processor(p) ? order_of(VK_PHYSICAL_DEVICE_TYPE_CPU) : order_of(p.deviceType);
}

struct Holder {
  std::mutex mutex;
  std::shared_ptr<Context> context;
  pid_t process = 0;
  ErrorCode code = ErrorCode::unsupported;  ///< why there is no context
  std::string why;

  /// Begins anew in a child made by fork.
  void enter_process() {
    // Drivers of hardware fail in a child, and what it tries can lose the device of its parent.
    const bool is_lost = code == ErrorCode::device_lost || (context && !context->features().is_processor);
    // The handles belong to the parent and the locks of its driver may be held: they are left as they are.
    if (context) new std::shared_ptr<Context>(std::move(context));
    context = nullptr;
    process = getpid();
    if (is_lost) {
      code = ErrorCode::device_lost;
      why = "a process forked from one that uses the GPU cannot use it; start processes by 'spawn'";
    }
  }
};

Holder& holder() {
  static auto* h = new Holder;
  return *h;
}

}  // namespace

Result<std::shared_ptr<Context>> Context::get() {
  Holder& h = holder();
  std::lock_guard lock(h.mutex);
  if (h.process != getpid()) {
    h.enter_process();
    if (h.code != ErrorCode::device_lost) {
      auto made = make();
      if (made.ok())
        h.context = *made;
      else
        h.why = made.error().message();
    }
  }
  if (!h.context) return fail(h.code, h.why);
  return h.context;
}

Result<Features> Context::probe() {
  static const auto* found = new Result<Features>([]() -> Result<Features> {
    auto context = MOKA_TRY(get());
    return context->features();
  }());
  if (!found->ok()) return fail(ErrorCode::unsupported, found->error().message());
  return found->value();
}

bool Context::is_own() const { return process_ == getpid(); }

Result<std::shared_ptr<Context>> Context::make() {
  std::shared_ptr<Context> c(new Context);
  c->process_ = getpid();
  MOKA_TRY(c->api_.open());
  MOKA_TRY(c->make_instance());
  MOKA_TRY(c->choose_device());
  MOKA_TRY(c->make_device());
  c->pipelines_ = MOKA_TRY(Pipelines::make(*c));
  return c;
}

Status Context::make_instance() {
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
  if (validate && api_.CreateDebugUtilsMessengerEXT != nullptr) {
    VkDebugUtilsMessengerCreateInfoEXT debug{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    debug.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
    debug.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    debug.pfnUserCallback = on_message;
    debug.pUserData = &messages_;
    MOKA_VK(api_, CreateDebugUtilsMessengerEXT, instance_, &debug, nullptr, &messenger_);
  }
  return {};
}

Status Context::choose_device() {
  uint32_t n = 0;
  MOKA_VK(api_, EnumeratePhysicalDevices, instance_, &n, nullptr);
  std::vector<VkPhysicalDevice> all(n);
  MOKA_VK(api_, EnumeratePhysicalDevices, instance_, &n, all.data());
  int best = 100;
  for (VkPhysicalDevice d : all) {
    VkPhysicalDeviceProperties2 p{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    api_.GetPhysicalDeviceProperties2(d, &p);
    if (p.properties.apiVersion < VK_API_VERSION_1_1 || order_of(p.properties) >= best) continue;
    uint32_t families = 0;
    api_.GetPhysicalDeviceQueueFamilyProperties(d, &families, nullptr);
    std::vector<VkQueueFamilyProperties> queues(families);
    api_.GetPhysicalDeviceQueueFamilyProperties(d, &families, queues.data());
    // A family that only computes runs beside what the machine draws.
    int family = -1;
    for (uint32_t i = 0; i < families; i++) {
      if ((queues[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
      if (family < 0 || (queues[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0) family = static_cast<int>(i);
    }
    if (family < 0) continue;
    best = order_of(p.properties);
    physical_ = d;
    family_ = static_cast<uint32_t>(family);
  }
  if (physical_ == VK_NULL_HANDLE) return fail(ErrorCode::unsupported, "no Vulkan 1.1 device that computes");
  return {};
}

Status Context::make_device() {
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceMaintenance3Properties largest{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &subgroup};
  VkPhysicalDeviceProperties2 p{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &largest};
  api_.GetPhysicalDeviceProperties2(physical_, &p);
  api_.GetPhysicalDeviceMemoryProperties(physical_, &memory_);
  const VkPhysicalDeviceLimits& limits = p.properties.limits;

  uint32_t n = 0;
  MOKA_VK(api_, EnumerateDeviceExtensionProperties, physical_, nullptr, &n, nullptr);
  std::vector<VkExtensionProperties> offered(n);
  MOKA_VK(api_, EnumerateDeviceExtensionProperties, physical_, nullptr, &n, offered.data());
  const bool is_1_2 = p.properties.apiVersion >= VK_API_VERSION_1_2;
  std::vector<const char*> extensions;
  auto has = [&](const char* name) {
    if (is_1_2) return true;
    const bool found = std::any_of(offered.begin(), offered.end(),
                                   [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
    if (found) extensions.push_back(name);
    return found;
  };
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
  api_.GetPhysicalDeviceFeatures2(physical_, &can);

  features_.name = p.properties.deviceName;
  features_.vendor = p.properties.vendorID;
  std::copy_n(p.properties.pipelineCacheUUID, features_.cache_uuid.size(), features_.cache_uuid.begin());
  features_.is_processor = is_processor(p.properties);
  features_.is_large = p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  features_.half_storage = half.storageBuffer16BitAccess;
  features_.half = small.shaderFloat16;
  features_.byte_storage = bytes.storageBuffer8BitAccess;
  features_.int8 = small.shaderInt8;
  // The vendors whose shared memory is ordinary memory behind the same cache.
  constexpr uint32_t kArm = 0x13b5, kImagination = 0x1010, kIntel = 0x8086;
  features_.local_memory = !features_.is_processor && features_.vendor != kArm && features_.vendor != kImagination;
  features_.subgroup = subgroup.subgroupSize;
  // Intel's drivers may divide a workgroup among smaller subgroups than they tell.
  features_.whole_subgroups = features_.vendor != kIntel;
  const bool computes = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  features_.subgroup_arithmetic = computes && (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0;
  features_.lanes = features_.subgroup_arithmetic && subgroup.subgroupSize >= 8 && subgroup.subgroupSize <= 64;
  features_.max_range = limits.maxStorageBufferRange;
  features_.max_allocation = largest.maxMemoryAllocationSize;
  features_.alignment = std::max<uint64_t>(64, limits.minStorageBufferOffsetAlignment);
  std::copy_n(limits.maxComputeWorkGroupCount, features_.groups.size(), features_.groups.begin());
  features_.max_invocations = limits.maxComputeWorkGroupInvocations;
  features_.max_shared = limits.maxComputeSharedMemorySize;
  const VkMemoryPropertyFlags all = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                    VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  features_.unified = (features_.is_processor || p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) &&
                      memory_type(~0u, all) >= 0;
  if (const char* v = std::getenv("MOKA_VULKAN_STAGING"); v != nullptr && std::string_view(v) == "1")
    features_.unified = false;
  if (const char* v = std::getenv("MOKA_VULKAN_HALF"); v != nullptr && std::string_view(v) == "0")
    features_.half = false;
  if (const char* v = std::getenv("MOKA_VULKAN_LOCAL"); v != nullptr)
    features_.local_memory = std::string_view(v) == "1";
  if (const char* v = std::getenv("MOKA_VULKAN_LARGE"); v != nullptr) features_.is_large = std::string_view(v) == "1";
  if (const char* v = std::getenv("MOKA_VULKAN_LANES"); v != nullptr && std::string_view(v) == "0")
    features_.lanes = false;

  // Only what shaders use is switched on.
  VkPhysicalDevice16BitStorageFeatures use_half{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  use_half.storageBuffer16BitAccess = half.storageBuffer16BitAccess;
  VkPhysicalDevice8BitStorageFeatures use_bytes{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  use_bytes.storageBuffer8BitAccess = bytes.storageBuffer8BitAccess;
  VkPhysicalDeviceShaderFloat16Int8Features use_small{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  use_small.shaderFloat16 = small.shaderFloat16;
  use_small.shaderInt8 = small.shaderInt8;
  VkPhysicalDeviceFeatures2 use{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &use_half};
  next = &use_half.pNext;
  if (bytes.storageBuffer8BitAccess) link(use_bytes);
  if (small.shaderFloat16 || small.shaderInt8) link(use_small);

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &use};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  MOKA_VK(api_, CreateDevice, physical_, &info, nullptr, &device_);
  MOKA_TRY(api_.load_device(device_));
  api_.GetDeviceQueue(device_, family_, 0, &queue_);
  return {};
}

Context::~Context() {
  if (!is_own()) return;
  if (device_ != VK_NULL_HANDLE) {
    api_.DeviceWaitIdle(device_);
    pipelines_.reset();
    api_.DestroyDevice(device_, nullptr);
  }
  if (messenger_ != VK_NULL_HANDLE) api_.DestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  if (instance_ != VK_NULL_HANDLE && api_.DestroyInstance != nullptr) api_.DestroyInstance(instance_, nullptr);
}

int Context::memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted) const {
  for (uint32_t i = 0; i < memory_.memoryTypeCount; i++)
    if ((allowed >> i & 1) != 0 && (memory_.memoryTypes[i].propertyFlags & wanted) == wanted)
      return static_cast<int>(i);
  return -1;
}

Status Context::submit(VkCommandBuffer commands, VkFence fence) {
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  std::lock_guard lock(queue_mutex_);
  MOKA_VK(api_, QueueSubmit, queue_, 1, &info, fence);
  return {};
}

Result<std::unique_ptr<CommandPool>> CommandPool::make(std::shared_ptr<Context> context) {
  std::unique_ptr<CommandPool> p(new CommandPool(std::move(context)));
  const Context& c = *p->context_;
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = c.family_;
  MOKA_VK(c.api(), CreateCommandPool, c.device(), &pool, nullptr, &p->pool_);
  VkCommandBufferAllocateInfo one{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  one.commandPool = p->pool_;
  one.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  one.commandBufferCount = 1;
  MOKA_VK(c.api(), AllocateCommandBuffers, c.device(), &one, &p->buffer_);
  VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  MOKA_VK(c.api(), CreateFence, c.device(), &fence, nullptr, &p->fence_);
  return p;
}

CommandPool::~CommandPool() {
  if (!context_->is_own()) return;
  (void)wait();
  context_->api().DestroyFence(context_->device(), fence_, nullptr);
  context_->api().DestroyCommandPool(context_->device(), pool_, nullptr);
}

Status CommandPool::submit() {
  if (!context_->is_own())
    return fail(ErrorCode::device_lost, "a submission of the process that this one was forked from");
  MOKA_VK(context_->api(), ResetFences, context_->device(), 1, &fence_);
  MOKA_TRY(context_->submit(buffer_, fence_));
  running_ = true;
  return {};
}

Status CommandPool::wait() {
  if (!running_ || !context_->is_own()) return {};
  running_ = false;
  MOKA_VK(context_->api(), WaitForFences, context_->device(), 1, &fence_, VK_TRUE, UINT64_MAX);
  return {};
}

}  // namespace moka::devices::vulkan
