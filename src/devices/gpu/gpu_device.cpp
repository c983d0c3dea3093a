// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/gpu_device.h"

#include <map>
#include <mutex>
#include <set>

#include "devices/gpu/common/conversions.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

std::string_view GpuDevice::kernel_name(std::string_view stem) const {
  static auto& mutex = *new std::mutex;
  static auto& names = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return *names.insert(cat(api_, ".", stem)).first;
}

std::span<const KernelDef> GpuDevice::kernels() const {
  static auto& mutex = *new std::mutex;
  static auto& by_api = *new std::map<std::string_view, std::vector<KernelDef>>;
  if (!is_there()) return {};
  const std::lock_guard lock(mutex);
  auto [it, is_new] = by_api.try_emplace(api_);
  if (is_new)
    for (const KernelFamily& family : kernel_families())
      for (const KernelDef& def : family.kernels) it->second.emplace_back(def).name = kernel_name(def.name);
  return it->second;
}

Match GpuDevice::convert(ir::DType dtype, const ir::Shape& shape, Layout from, Layout to) const {
  return match_conversion(*this, dtype, shape, from, to);
}

Match GpuDevice::unpack(kernel::PlaneOrder order, const ir::Type& planes) const {
  return match_unpack(*this, order, planes);
}

bool GpuDevice::applies(const ir::Epilogue& epilogue) const { return function_of(epilogue).has_value(); }

bool GpuDevice::may_join(const KernelChoice& first, const KernelChoice& reader) const {
  return first.kernel == kernel_name("conv.direct") && reader.kernel == kernel_name("conv");
}

}  // namespace moka::devices::gpu
