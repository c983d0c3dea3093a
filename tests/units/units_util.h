// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "api/api_util.h"
#include "devices/simulator/device.h"
#include "kernel/device.h"

namespace moka::api {
std::vector<const kernel::Device*> all_devices();
}

/// Helpers for tests of compute units.
namespace moka::test {

inline std::string program_op(const std::string& name, const std::string& type, const std::string& x) {
  return "tensor<fp32, [1, 4, 8, 8]> " + name + " = " + type + "(x = " + x + ")[name = string(\"" + name + "\")];\n";
}

/// A chain of operations that no pass fuses, because their results are outputs.
inline const std::string kChain = program(
    "tensor<fp32, [1, 4, 8, 8]> x",
    program_op("enc_a", "exp", "x") + program_op("enc_b", "tanh", "enc_a") + program_op("encoder", "sigmoid", "enc_b") +
        program_op("dec_a", "exp", "encoder") + program_op("dec_b", "tanh", "dec_a"),
    "enc_a, enc_b, encoder, dec_a, dec_b");

inline Model load_chain(std::vector<Pin> pins, ModelConfiguration c = {}) {
  c.pins = std::move(pins);
  return Model::from_mil(kChain, c);
}

/// "name:device ..." for the operations of the plan.
inline std::string devices_of(const ComputePlan& plan) {
  std::string out;
  for (const PlannedOperation& o : plan.operations)
    if (!o.kernel.empty()) out += (out.empty() ? "" : " ") + o.name + ":" + o.device;
  return out;
}

inline std::string remark_of(const ComputePlan& plan, const std::string& pass) {
  for (const PassRemark& r : plan.remarks)
    if (r.pass == pass) return r.text;
  return {};
}

/// A GPU with the simulator's memory and kernels.
class Gpu : public kernel::Device {
 public:
  explicit Gpu(std::string named_only, std::string software = {})
      : named_only_(std::move(named_only)), software_(std::move(software)) {}
  std::string_view name() const override { return "gpu0"; }
  std::string description() const override { return "a GPU of a test"; }
  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::gpu; }
  int rank() const override { return 40; }
  std::string named_only() const override { return named_only_; }
  std::vector<const kernel::Device*> others() const override { return others_; }
  /// Another card of the same driver.
  void add(const kernel::Device& other) { others_.push_back(&other); }
  std::string software() const override { return software_; }
  std::span<const kernel::KernelDef> kernels() const override { return devices::simulator::device().kernels(); }
  const kernel::Memory* memory() const override { return devices::simulator::device().memory(); }

 private:
  std::string named_only_, software_;
  std::vector<const kernel::Device*> others_;
};

}  // namespace moka::test
