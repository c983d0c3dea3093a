// SPDX-License-Identifier: Apache-2.0
// A Vulkan layer that counts an application's submissions, so that engines are compared by the same counts. It changes
// nothing, unless MOKA_COUNT_ONLY=1 is set: dispatches are then counted but not run.
//
//   VK_LAYER_PATH=build/bench/vulkan VK_INSTANCE_LAYERS=VK_LAYER_MOKA_count PROGRAM
//
// A program opens the layer's library and reads the counts through its function `moka_count_read`.
#include <vulkan/vk_layer.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

/// Counts of all submissions since the process began.
struct Counts {
  uint64_t submissions = 0, dispatches = 0, copies = 0;
  uint64_t barriers = 0;  ///< number of barrier commands
  uint64_t waits = 0;     ///< points between other commands that have at least one barrier
  uint64_t bytes = 0;     ///< bytes of buffers bound by dispatches, counted once per dispatch; copied bytes count twice
  uint64_t copy_bytes = 0;  ///< bytes of copies only
  uint64_t pipelines = 0;   ///< pipelines created (not submissions)
};

namespace {

struct Recorded {
  Counts counts;
  bool at_barrier = false;
  std::map<uint32_t, std::map<uint32_t, uint64_t>> bound;  ///< bytes by set and binding
};

struct Template {
  std::vector<VkDescriptorUpdateTemplateEntry> entries;
};

struct Instance {
  VkInstance handle;
  PFN_vkGetInstanceProcAddr next;
};

struct Device {
  VkDevice handle;
  PFN_vkGetDeviceProcAddr next;
  std::unordered_map<VkCommandBuffer, Recorded> commands;
  std::unordered_map<uint64_t, std::map<uint32_t, uint64_t>> sets;  ///< bytes by binding
  std::unordered_map<uint64_t, Template> templates;
  std::unordered_map<uint64_t, uint64_t> buffers;  ///< bytes
};

// Never destroyed, because applications may destroy their devices at the end of the process.
std::mutex& mutex = *new std::mutex;  // guards everything below; not held during calls of the next layer
Counts total;
char driver[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE] = "";  // name of the last device
auto& instances = *new std::unordered_map<void*, Instance>;
auto& devices = *new std::unordered_map<void*, std::unique_ptr<Device>>;

/// The loader's dispatch table, which all objects of an instance or a device share.
void* key(const void* object) { return *static_cast<void* const*>(object); }

template <class H>
uint64_t number(H handle) {
  return reinterpret_cast<uint64_t>(handle);
}

bool counts_only() {
  static const bool only = [] {
    const char* v = std::getenv("MOKA_COUNT_ONLY");
    return v != nullptr && std::strcmp(v, "1") == 0;
  }();
  return only;
}

Device& device_of(const void* object) {
  std::lock_guard lock(mutex);
  return *devices.at(key(object));
}

/// Finds a function of the layers below.
template <class F>
F below(const Device& d, const char* name) {
  return reinterpret_cast<F>(d.next(d.handle, name));
}

#define NEXT(device, name) below<PFN_##name>(device, #name)

template <class F>
void record(Device& d, VkCommandBuffer c, F change) {
  std::lock_guard lock(mutex);
  change(d.commands[c]);
}

void add_dispatch(Device& d, VkCommandBuffer c) {
  record(d, c, [](Recorded& r) {
    r.counts.dispatches++;
    r.at_barrier = false;
    for (const auto& [set, bindings] : r.bound)
      for (const auto& [binding, bytes] : bindings) r.counts.bytes += bytes;
  });
}

void add_copy(Device& d, VkCommandBuffer c, uint64_t bytes, uint64_t times) {
  record(d, c, [=](Recorded& r) {
    r.counts.copies++;
    r.counts.copy_bytes += bytes * times;
    r.counts.bytes += bytes * times;
    r.at_barrier = false;
  });
}

void add_barrier(Device& d, VkCommandBuffer c) {
  record(d, c, [](Recorded& r) {
    r.counts.barriers++;
    r.counts.waits += r.at_barrier ? 0 : 1;
    r.at_barrier = true;
  });
}

void add_submitted(Device& d, VkCommandBuffer c) {
  const Counts& n = d.commands[c].counts;
  total.dispatches += n.dispatches;
  total.copies += n.copies;
  total.barriers += n.barriers;
  total.waits += n.waits;
  total.bytes += n.bytes;
  total.copy_bytes += n.copy_bytes;
}

bool is_buffer(VkDescriptorType t) {
  return t == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER || t == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC ||
         t == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER || t == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
}

uint64_t bytes_of(const Device& d, const VkDescriptorBufferInfo& info) {
  if (info.range != VK_WHOLE_SIZE) return info.range;
  const auto found = d.buffers.find(number(info.buffer));
  return found == d.buffers.end() ? 0 : found->second - std::min<uint64_t>(found->second, info.offset);
}

void write_set(const Device& d, std::map<uint32_t, uint64_t>& set, const VkWriteDescriptorSet& w) {
  if (!is_buffer(w.descriptorType)) return;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < w.descriptorCount; i++) bytes += bytes_of(d, w.pBufferInfo[i]);
  set[w.dstBinding] = bytes;
}

void write_set(const Device& d, std::map<uint32_t, uint64_t>& set, const Template& t, const void* data) {
  for (const VkDescriptorUpdateTemplateEntry& e : t.entries) {
    if (!is_buffer(e.descriptorType)) continue;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < e.descriptorCount; i++) {
      VkDescriptorBufferInfo info;
      std::memcpy(&info, static_cast<const char*>(data) + e.offset + i * e.stride, sizeof info);
      bytes += bytes_of(d, info);
    }
    // Writes to an array of a binding may be partial or continue into the next bindings.
    set[e.dstBinding + e.dstArrayElement] = bytes;
  }
}

// Commands.

VKAPI_ATTR VkResult VKAPI_CALL BeginCommandBuffer(VkCommandBuffer c, const VkCommandBufferBeginInfo* info) {
  Device& d = device_of(c);
  record(d, c, [](Recorded& r) { r = {}; });
  return NEXT(d, vkBeginCommandBuffer)(c, info);
}

VKAPI_ATTR void VKAPI_CALL CmdDispatch(VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z) {
  Device& d = device_of(c);
  add_dispatch(d, c);
  if (!counts_only()) NEXT(d, vkCmdDispatch)(c, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL CmdDispatchBase(VkCommandBuffer c, uint32_t x0, uint32_t y0, uint32_t z0, uint32_t x,
                                           uint32_t y, uint32_t z) {
  Device& d = device_of(c);
  add_dispatch(d, c);
  if (!counts_only()) NEXT(d, vkCmdDispatchBase)(c, x0, y0, z0, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL CmdDispatchIndirect(VkCommandBuffer c, VkBuffer buffer, VkDeviceSize offset) {
  Device& d = device_of(c);
  add_dispatch(d, c);
  if (!counts_only()) NEXT(d, vkCmdDispatchIndirect)(c, buffer, offset);
}

VKAPI_ATTR void VKAPI_CALL CmdCopyBuffer(VkCommandBuffer c, VkBuffer from, VkBuffer to, uint32_t n,
                                         const VkBufferCopy* regions) {
  Device& d = device_of(c);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < n; i++) bytes += regions[i].size;
  add_copy(d, c, bytes, 2);
  NEXT(d, vkCmdCopyBuffer)(c, from, to, n, regions);
}

VKAPI_ATTR void VKAPI_CALL CmdCopyBuffer2(VkCommandBuffer c, const VkCopyBufferInfo2* info) {
  Device& d = device_of(c);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < info->regionCount; i++) bytes += info->pRegions[i].size;
  add_copy(d, c, bytes, 2);
  auto next = NEXT(d, vkCmdCopyBuffer2);
  (next != nullptr ? next : below<PFN_vkCmdCopyBuffer2>(d, "vkCmdCopyBuffer2KHR"))(c, info);
}

VKAPI_ATTR void VKAPI_CALL CmdFillBuffer(VkCommandBuffer c, VkBuffer to, VkDeviceSize offset, VkDeviceSize size,
                                         uint32_t value) {
  Device& d = device_of(c);
  uint64_t bytes = size;
  if (size == VK_WHOLE_SIZE) {
    std::lock_guard lock(mutex);
    bytes = bytes_of(d, {to, offset, size});
  }
  add_copy(d, c, bytes, 1);
  NEXT(d, vkCmdFillBuffer)(c, to, offset, size, value);
}

VKAPI_ATTR void VKAPI_CALL CmdUpdateBuffer(VkCommandBuffer c, VkBuffer to, VkDeviceSize offset, VkDeviceSize size,
                                           const void* data) {
  Device& d = device_of(c);
  add_copy(d, c, size, 1);
  NEXT(d, vkCmdUpdateBuffer)(c, to, offset, size, data);
}

VKAPI_ATTR void VKAPI_CALL CmdPipelineBarrier(VkCommandBuffer c, VkPipelineStageFlags from, VkPipelineStageFlags to,
                                              VkDependencyFlags flags, uint32_t memories, const VkMemoryBarrier* memory,
                                              uint32_t buffers, const VkBufferMemoryBarrier* buffer, uint32_t images,
                                              const VkImageMemoryBarrier* image) {
  Device& d = device_of(c);
  add_barrier(d, c);
  NEXT(d, vkCmdPipelineBarrier)(c, from, to, flags, memories, memory, buffers, buffer, images, image);
}

VKAPI_ATTR void VKAPI_CALL CmdPipelineBarrier2(VkCommandBuffer c, const VkDependencyInfo* info) {
  Device& d = device_of(c);
  add_barrier(d, c);
  auto next = NEXT(d, vkCmdPipelineBarrier2);
  (next != nullptr ? next : below<PFN_vkCmdPipelineBarrier2>(d, "vkCmdPipelineBarrier2KHR"))(c, info);
}

VKAPI_ATTR void VKAPI_CALL CmdBindDescriptorSets(VkCommandBuffer c, VkPipelineBindPoint point, VkPipelineLayout layout,
                                                 uint32_t first, uint32_t n, const VkDescriptorSet* sets,
                                                 uint32_t offsets, const uint32_t* offset) {
  Device& d = device_of(c);
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE)
    record(d, c, [&](Recorded& r) {
      for (uint32_t i = 0; i < n; i++) r.bound[first + i] = d.sets[number(sets[i])];
    });
  NEXT(d, vkCmdBindDescriptorSets)(c, point, layout, first, n, sets, offsets, offset);
}

VKAPI_ATTR void VKAPI_CALL CmdPushDescriptorSetKHR(VkCommandBuffer c, VkPipelineBindPoint point,
                                                   VkPipelineLayout layout, uint32_t set, uint32_t n,
                                                   const VkWriteDescriptorSet* writes) {
  Device& d = device_of(c);
  record(d, c, [&](Recorded& r) {
    r.bound[set].clear();
    for (uint32_t i = 0; i < n; i++) write_set(d, r.bound[set], writes[i]);
  });
  NEXT(d, vkCmdPushDescriptorSetKHR)(c, point, layout, set, n, writes);
}

VKAPI_ATTR void VKAPI_CALL CmdPushDescriptorSetWithTemplateKHR(VkCommandBuffer c, VkDescriptorUpdateTemplate t,
                                                               VkPipelineLayout layout, uint32_t set,
                                                               const void* data) {
  Device& d = device_of(c);
  record(d, c, [&](Recorded& r) {
    r.bound[set].clear();
    write_set(d, r.bound[set], d.templates[number(t)], data);
  });
  NEXT(d, vkCmdPushDescriptorSetWithTemplateKHR)(c, t, layout, set, data);
}

// Objects.

VKAPI_ATTR void VKAPI_CALL UpdateDescriptorSets(VkDevice device, uint32_t n, const VkWriteDescriptorSet* writes,
                                                uint32_t copies, const VkCopyDescriptorSet* copy) {
  Device& d = device_of(device);
  {
    std::lock_guard lock(mutex);
    for (uint32_t i = 0; i < n; i++) write_set(d, d.sets[number(writes[i].dstSet)], writes[i]);
  }
  NEXT(d, vkUpdateDescriptorSets)(device, n, writes, copies, copy);
}

VKAPI_ATTR void VKAPI_CALL UpdateDescriptorSetWithTemplate(VkDevice device, VkDescriptorSet set,
                                                           VkDescriptorUpdateTemplate t, const void* data) {
  Device& d = device_of(device);
  {
    std::lock_guard lock(mutex);
    write_set(d, d.sets[number(set)], d.templates[number(t)], data);
  }
  NEXT(d, vkUpdateDescriptorSetWithTemplate)(device, set, t, data);
}

VKAPI_ATTR VkResult VKAPI_CALL CreateDescriptorUpdateTemplate(VkDevice device,
                                                              const VkDescriptorUpdateTemplateCreateInfo* info,
                                                              const VkAllocationCallbacks* a,
                                                              VkDescriptorUpdateTemplate* out) {
  Device& d = device_of(device);
  const VkResult result = NEXT(d, vkCreateDescriptorUpdateTemplate)(device, info, a, out);
  if (result == VK_SUCCESS) {
    std::lock_guard lock(mutex);
    d.templates[number(*out)] = {
        {info->pDescriptorUpdateEntries, info->pDescriptorUpdateEntries + info->descriptorUpdateEntryCount}};
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateBuffer(VkDevice device, const VkBufferCreateInfo* info,
                                            const VkAllocationCallbacks* a, VkBuffer* out) {
  Device& d = device_of(device);
  const VkResult result = NEXT(d, vkCreateBuffer)(device, info, a, out);
  if (result == VK_SUCCESS) {
    std::lock_guard lock(mutex);
    d.buffers[number(*out)] = info->size;
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateComputePipelines(VkDevice device, VkPipelineCache cache, uint32_t n,
                                                      const VkComputePipelineCreateInfo* infos,
                                                      const VkAllocationCallbacks* a, VkPipeline* out) {
  Device& d = device_of(device);
  {
    std::lock_guard lock(mutex);
    total.pipelines += n;
  }
  return NEXT(d, vkCreateComputePipelines)(device, cache, n, infos, a, out);
}

VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit(VkQueue queue, uint32_t n, const VkSubmitInfo* infos, VkFence fence) {
  Device& d = device_of(queue);
  {
    std::lock_guard lock(mutex);
    total.submissions += n;
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t k = 0; k < infos[i].commandBufferCount; k++) add_submitted(d, infos[i].pCommandBuffers[k]);
  }
  return NEXT(d, vkQueueSubmit)(queue, n, infos, fence);
}

VkResult submit2(const char* name, VkQueue queue, uint32_t n, const VkSubmitInfo2* infos, VkFence fence) {
  Device& d = device_of(queue);
  {
    std::lock_guard lock(mutex);
    total.submissions += n;
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t k = 0; k < infos[i].commandBufferInfoCount; k++)
        add_submitted(d, infos[i].pCommandBufferInfos[k].commandBuffer);
  }
  return below<PFN_vkQueueSubmit2>(d, name)(queue, n, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit2(VkQueue queue, uint32_t n, const VkSubmitInfo2* infos, VkFence fence) {
  return submit2("vkQueueSubmit2", queue, n, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit2KHR(VkQueue queue, uint32_t n, const VkSubmitInfo2* infos, VkFence fence) {
  return submit2("vkQueueSubmit2KHR", queue, n, infos, fence);
}

// The chain of layers.

template <class Info>
Info* link_of(const void* chain, VkStructureType type) {
  auto* at = static_cast<Info*>(const_cast<void*>(chain));
  while (at != nullptr && !(at->sType == type && at->function == VK_LAYER_LINK_INFO))
    at = static_cast<Info*>(const_cast<void*>(at->pNext));
  return at;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateInstance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* a,
                                              VkInstance* out) {
  auto* link = link_of<VkLayerInstanceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(next(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = create(info, a, out);
  if (result != VK_SUCCESS) return result;
  std::lock_guard lock(mutex);
  instances[key(*out)] = {*out, next};
  return result;
}

VKAPI_ATTR void VKAPI_CALL DestroyInstance(VkInstance instance, const VkAllocationCallbacks* a) {
  PFN_vkGetInstanceProcAddr next;
  {
    std::lock_guard lock(mutex);
    next = instances.at(key(instance)).next;
    instances.erase(key(instance));
  }
  reinterpret_cast<PFN_vkDestroyInstance>(next(instance, "vkDestroyInstance"))(instance, a);
}

VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                            const VkAllocationCallbacks* a, VkDevice* out) {
  auto* link = link_of<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr next = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  VkInstance instance;
  {
    std::lock_guard lock(mutex);
    instance = instances.at(key(physical)).handle;
  }
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(next_instance(instance, "vkCreateDevice"));
  const VkResult result = create(physical, info, a, out);
  if (result != VK_SUCCESS) return result;
  const auto properties =
      reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(next_instance(instance, "vkGetPhysicalDeviceProperties"));
  VkPhysicalDeviceProperties of;
  properties(physical, &of);
  auto device = std::make_unique<Device>();
  device->handle = *out;
  device->next = next;
  std::lock_guard lock(mutex);
  std::memcpy(driver, of.deviceName, sizeof driver);
  devices[key(*out)] = std::move(device);
  return result;
}

VKAPI_ATTR void VKAPI_CALL DestroyDevice(VkDevice handle, const VkAllocationCallbacks* a) {
  std::unique_ptr<Device> device;
  {
    std::lock_guard lock(mutex);
    device = std::move(devices[key(handle)]);
    devices.erase(key(handle));
  }
  if (device) NEXT(*device, vkDestroyDevice)(handle, a);
}

struct Entry {
  const char* name;
  PFN_vkVoidFunction function;
};

#define ENTRY(f) \
  { "vk" #f, reinterpret_cast<PFN_vkVoidFunction>(&f) }
#define ENTRY_AS(name, f) \
  { "vk" #name, reinterpret_cast<PFN_vkVoidFunction>(&f) }

const Entry device_entries[] = {ENTRY(BeginCommandBuffer),
                                ENTRY(CmdDispatch),
                                ENTRY(CmdDispatchBase),
                                ENTRY_AS(CmdDispatchBaseKHR, CmdDispatchBase),
                                ENTRY(CmdDispatchIndirect),
                                ENTRY(CmdCopyBuffer),
                                ENTRY(CmdCopyBuffer2),
                                ENTRY_AS(CmdCopyBuffer2KHR, CmdCopyBuffer2),
                                ENTRY(CmdFillBuffer),
                                ENTRY(CmdUpdateBuffer),
                                ENTRY(CmdPipelineBarrier),
                                ENTRY(CmdPipelineBarrier2),
                                ENTRY_AS(CmdPipelineBarrier2KHR, CmdPipelineBarrier2),
                                ENTRY(CmdBindDescriptorSets),
                                ENTRY(CmdPushDescriptorSetKHR),
                                ENTRY(CmdPushDescriptorSetWithTemplateKHR),
                                ENTRY(UpdateDescriptorSets),
                                ENTRY(UpdateDescriptorSetWithTemplate),
                                ENTRY_AS(UpdateDescriptorSetWithTemplateKHR, UpdateDescriptorSetWithTemplate),
                                ENTRY(CreateDescriptorUpdateTemplate),
                                ENTRY_AS(CreateDescriptorUpdateTemplateKHR, CreateDescriptorUpdateTemplate),
                                ENTRY(CreateBuffer),
                                ENTRY(CreateComputePipelines),
                                ENTRY(QueueSubmit),
                                ENTRY(QueueSubmit2),
                                ENTRY(QueueSubmit2KHR),
                                ENTRY(DestroyDevice)};

const Entry instance_entries[] = {ENTRY(CreateInstance), ENTRY(DestroyInstance), ENTRY(CreateDevice)};

template <class Entries>
PFN_vkVoidFunction find(const Entries& entries, const char* name) {
  for (const Entry& e : entries)
    if (std::strcmp(e.name, name) == 0) return e.function;
  return nullptr;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return reinterpret_cast<PFN_vkVoidFunction>(&GetDeviceProcAddr);
  const PFN_vkVoidFunction next = NEXT(device_of(device), vkGetDeviceProcAddr)(device, name);
  // Functions that the driver lacks stay absent.
  if (next == nullptr) return nullptr;
  const PFN_vkVoidFunction own = find(device_entries, name);
  return own != nullptr ? own : next;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(&GetInstanceProcAddr);
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return reinterpret_cast<PFN_vkVoidFunction>(&GetDeviceProcAddr);
  if (const PFN_vkVoidFunction own = find(instance_entries, name)) return own;
  if (instance == VK_NULL_HANDLE) return nullptr;
  PFN_vkGetInstanceProcAddr next;
  {
    std::lock_guard lock(mutex);
    next = instances.at(key(instance)).next;
  }
  const PFN_vkVoidFunction there = next(instance, name);
  if (there == nullptr) return nullptr;
  const PFN_vkVoidFunction own = find(device_entries, name);
  return own != nullptr ? own : there;
}

}  // namespace

EXPORT VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* v) {
  if (v == nullptr || v->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT || v->loaderLayerInterfaceVersion < 2)
    return VK_ERROR_INITIALIZATION_FAILED;
  v->loaderLayerInterfaceVersion = 2;
  v->pfnGetInstanceProcAddr = GetInstanceProcAddr;
  v->pfnGetDeviceProcAddr = GetDeviceProcAddr;
  v->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

/// Copies the counts of this process: as many numbers as `Counts` has members.
EXPORT void moka_count_read(uint64_t* to) {
  std::lock_guard lock(mutex);
  std::memcpy(to, &total, sizeof total);
}

/// The name of the device that is counted; empty if none was created. Valid while the library is loaded.
EXPORT const char* moka_count_device() { return driver; }
