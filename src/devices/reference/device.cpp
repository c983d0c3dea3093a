// SPDX-License-Identifier: Apache-2.0
#include "devices/reference/device.h"

namespace moka::devices::reference {

namespace {

using namespace kernel;

/// The cost of plain loops, an order of magnitude above that of any optimized kernel.
double estimate(const MatchCall& call) {
  double elements = 0;
  for (const ir::Type& t : call.outputs)
    if (t.is_tensor()) elements += static_cast<double>(t.shape().count());
  return elements * 20e-9;
}

Match match(const MatchCall& call) {
  const ir::OpVersion& version = call.call.version();
  if (!version.reference) return Match::no(cat(version.def->name, " is run by the executor"));
  KernelChoice c;
  c.kernel = "reference";
  c.cost = estimate(call);
  // Operations that change a list may do so in place.
  if (call.outputs.size() == 1 && call.outputs[0].is_list() && version.param_index("ls") >= 0)
    c.in_place = call.call.arg_index("ls");
  c.run = [&version](const KernelArgs& args) { return version.reference(*args.call, args.out); };
  return Match::yes(std::move(c));
}

class Reference final : public Device {
 public:
  std::string_view name() const override { return "reference"; }
  std::string description() const override { return "plain loops, double accumulation"; }
  ComputeUnit unit() const override { return ComputeUnit::cpu; }
  int rank() const override { return 1000; }
  std::span<const KernelDef> kernels() const override {
    static const KernelDef defs[] = {{"reference", {}, match, true}};
    return defs;
  }
};

}  // namespace

const Device& device() {
  static const Reference d;
  return d;
}

std::vector<const Device*> devices() { return {&device()}; }

}  // namespace moka::devices::reference
