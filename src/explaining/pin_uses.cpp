// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "explaining/pins.h"

namespace moka::explaining {

namespace {

void collect(const ir::Block& block, std::vector<const ir::Op*>& to) {
  for (const auto& op : block.ops()) {
    if (op->has_trait(ir::Trait::constant)) continue;
    to.push_back(op.get());
    for (size_t b = 0; b < op->block_count(); b++) collect(*op->block(b), to);
  }
}

/// What the passes made of the operations of the model.
class Fates {
 public:
  explicit Fates(const runtime::Model& model) : model_(model) { collect(model.ir().body(), ops_); }

  const std::vector<const ir::Op*>& ops() const { return ops_; }

  /// "'relu1' was fused into 'conv1', whose own pins count".
  std::string of(const std::string& name, bool takes_pin) const {
    for (const ir::Op* op : ops_)
      for (const ir::Epilogue& e : op->epilogue)
        if (e.origin == name)
          return cat("'", name, "' was fused into '", op->name,
                     takes_pin ? "', which goes with it" : "', whose own pins count");
    for (const passes::Remark& r : model_.remarks())
      if (r.text.starts_with(cat(name, " into ")))
        return cat("'", name, "' was made part of '", r.text.substr(name.size() + 6), "' (", r.pass, ")");
    return cat("'", name, "' was folded into constants, made part of another operation, or is not needed");
  }

  /// What became of operations that a pin matches in the model, but not in the optimized program; empty: nothing.
  std::string gone(const std::string& pattern) const {
    std::set<const ir::SourceOp*> there;
    std::set<std::string_view> with_others;
    for (const ir::Op* op : ops_) {
      if (!pin_matches(pattern, *op)) continue;
      there.insert(op->source.get());
      for (const ir::Epilogue& e : op->epilogue) with_others.insert(e.origin);
    }
    size_t count = 0;
    std::string first;
    std::set<const ir::SourceOp*> counted;
    for (const runtime::SourceRecord& r : model_.sources()) {
      if (!pin_matches(pattern, r) || there.contains(r.source.get()) || !counted.insert(r.source.get()).second)
        continue;
      if (count++ == 0) first = of(r.name, with_others.contains(r.name));
    }
    if (count < 2) return first;
    return cat(count, " operations are no longer there as such: ", first, ", and so on");
  }

 private:
  const runtime::Model& model_;
  std::vector<const ir::Op*> ops_;
};

}  // namespace

std::vector<PlannedPin> DevicePins::uses(const runtime::Model& model) const {
  std::vector<PlannedPin> out;
  if (pins_.empty()) return out;
  const Fates fates(model);
  for (size_t i = 0; i < pins_.size(); i++) {
    const auto& [pattern, device] = pins_[i];
    PlannedPin use{pattern, std::string(device->name())};
    for (const ir::Op* op : fates.ops()) {
      if (!pin_matches(pattern, *op)) continue;
      use.matched++;
      use.decided += std::none_of(pins_.begin() + static_cast<std::ptrdiff_t>(i) + 1, pins_.end(),
                                  [&](const auto& later) { return pin_matches(later.first, *op); });
    }
    // What a scope or many names match need not be told one by one.
    const bool is_wide = pattern.starts_with("scope:") || pattern.find('*') != std::string::npos;
    const std::string gone = use.matched > 0 && is_wide ? std::string() : fates.gone(pattern);
    const std::string pin = cat("pin '", pattern, "=", device->name(), "'");
    if (use.matched > 0 && !gone.empty()) use.note = cat(pin, ": ", gone);
    if (use.matched == 0)
      use.note = gone.empty() ? cat(pin, " matches no operation", pin_advice(pattern, model.sources()))
                              : cat(pin, " matches no operation of the optimized program: ", gone);
    out.push_back(std::move(use));
  }
  return out;
}

}  // namespace moka::explaining
