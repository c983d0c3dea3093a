// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/device.h"

#include <algorithm>

#include "devices/cpu/isa.h"
#include "devices/cpu/kernels/family.h"
#include "kernel/device.h"

namespace moka::devices::cpu {

namespace {

class Cpu final : public kernel::Device {
 public:
  Cpu() {
    isa();  // sets oneDNN's instruction set, which must happen before its first use
    const std::span<const KernelFamily> listed = kernel_families();
    std::vector<KernelFamily> families(listed.begin(), listed.end());
    std::ranges::stable_sort(families, {}, &KernelFamily::order);
    for (const KernelFamily& f : families) kernels_.insert(kernels_.end(), f.kernels.begin(), f.kernels.end());
  }
  std::string_view name() const override { return "cpu"; }
  std::string description() const override { return describe(); }
  std::string identity() const override { return cpu::identity(); }
  std::string packing() const override { return cpu::instruction_sets(); }
  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::cpu; }
  int rank() const override { return 100; }
  std::span<const KernelDef> kernels() const override { return kernels_; }

 private:
  std::vector<KernelDef> kernels_;
};

}  // namespace

const kernel::Device& device() {
  static const Cpu d;
  return d;
}

std::vector<const kernel::Device*> devices() { return {&device()}; }

}  // namespace moka::devices::cpu
