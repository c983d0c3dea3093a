// SPDX-License-Identifier: Apache-2.0
#include "kernel/device.h"

#include <algorithm>

#include "kernel/memory.h"

namespace moka::kernel {

bool KernelDef::runs(std::string_view op) const {
  return ops.empty() || std::find(ops.begin(), ops.end(), op) != ops.end();
}

Match KernelDef::claim(const MatchCall& call) const {
  if (low_memory && !call.asked) return Match::no("only with low_memory");
  return call.call.has_addend() && !addend ? Match::no("a tensor to be added") : match(call);
}

Match Device::claim(const MatchCall& given) const {
  MatchCall call = given;
  call.device = this;
  const std::string& op = call.call.version().def->name;
  std::string refusals, last;
  for (const KernelDef& k : kernels()) {
    if (!k.runs(op)) continue;
    Match m = k.claim(call);
    if (m.choice) {
      m.refusal = std::move(refusals);
      return m;
    }
    if (!refusals.empty() && m.refusal == last)
      refusals.insert(refusals.size() - last.size() - 2, cat(", ", k.name));
    else
      refusals += cat(refusals.empty() ? "" : "; ", k.name, ": ", m.refusal);
    last = std::move(m.refusal);
  }
  if (refusals.empty()) refusals = cat("no kernel for ", op);
  return Match::no(std::move(refusals));
}

Result<std::shared_ptr<const Buffer>> PrepareContext::upload(
    int, std::string_view, size_t, const std::function<Status(const ir::TensorView&, std::byte*)>&) {
  return fail(ErrorCode::internal, "there is no device memory to upload to");
}

Result<std::shared_ptr<const Buffer>> PrepareContext::upload_stored(int, std::string_view, size_t,
                                                                    const std::function<Status(std::byte*)>&) {
  return fail(ErrorCode::internal, "there is no device memory to upload to");
}

std::string_view name_of(ComputeUnit unit) {
  switch (unit) {
    case ComputeUnit::cpu: return "cpu";
    case ComputeUnit::gpu: return "gpu";
    case ComputeUnit::neural_engine: return "neuralEngine";
  }
  return "";
}

bool Device::may_join(const KernelChoice&, const KernelChoice&) const { return false; }
Status Device::read_code(const std::string&) const { return {}; }
Status Device::write_code(const std::string&) const { return {}; }

Result<std::unique_ptr<Device>> Device::with_rules(std::vector<const Device*>, std::string_view) const {
  return fail(ErrorCode::unsupported, "device '", name(), "' has no rules, because it is not a preview");
}

Result<std::unique_ptr<Queue>> Device::open_queue() const {
  return fail(ErrorCode::internal, "device '", name(), "' computes in host memory and has no queue");
}

}  // namespace moka::kernel
