#include <algorithm>

#include "kernel/kernel.h"

namespace moka::kernel {

bool KernelDef::runs(std::string_view op) const {
  return ops.empty() || std::find(ops.begin(), ops.end(), op) != ops.end();
}

Match KernelDef::claim(const MatchCall& call) const {
  return call.call.has_addend() && !addend ? Match::no("a tensor to be added") : match(call);
}

Match Device::claim(const MatchCall& call) const {
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

}  // namespace moka::kernel
