#include <algorithm>

#include "kernel/kernel.h"

namespace moka::kernel {

Match Device::claim(const MatchCall& call) const {
  const std::string& op = call.call.version().def->name;
  std::string refusals;
  for (const KernelDef& k : kernels()) {
    if (!k.ops.empty() && std::find(k.ops.begin(), k.ops.end(), op) == k.ops.end()) continue;
    Match m = call.call.has_addend() && !k.addend ? Match::no("a tensor to be added") : k.match(call);
    if (m.choice) {
      m.refusal = std::move(refusals);
      return m;
    }
    if (!refusals.empty()) refusals += "; ";
    refusals += cat(k.name, ": ", m.refusal);
  }
  if (refusals.empty()) refusals = cat("no kernel for ", op);
  return Match::no(std::move(refusals));
}

}  // namespace moka::kernel
