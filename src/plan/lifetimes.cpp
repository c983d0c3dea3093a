#include <algorithm>
#include <climits>

#include "kernel/device.h"
#include "plan/plan.h"

namespace moka::plan {

void find_regions(Plan& plan) {
  for (Region& r : plan.regions) r.first = INT_MAX, r.steps.clear();
  for (size_t s = 0; s < plan.steps.size(); s++) {
    const Step& step = plan.steps[s];
    if (step.region < 0) continue;
    Region& r = plan.regions[static_cast<size_t>(step.region)];
    const auto at = static_cast<int>(s);
    r.first = std::min(r.first, at);
    if (step.kind == Step::Kind::submit) r.submit = at;
    if (step.kind == Step::Kind::run || step.kind == Step::Kind::convert) r.steps.push_back(at);
  }
}

bool is_state_store(const Plan& plan, const Step& step) {
  if (step.kind != Step::Kind::convert || step.region < 0) return false;
  const Place& to = plan.places[static_cast<size_t>(step.out[0])];
  return to.storage == Storage::external && to.device != nullptr;
}

void find_lifetimes(Plan& plan, const ir::Op* pending) {
  auto& places = plan.places;
  const int end = static_cast<int>(plan.steps.size());
  for (Place& p : places) p.first = INT_MAX, p.last = -1;
  auto touch = [&](int i, int step) {
    Place& r = places[static_cast<size_t>(places[static_cast<size_t>(i)].root)];
    r.first = std::min(r.first, step);
    r.last = std::max(r.last, step);
  };
  std::vector<int> running;  // regions
  for (int s = 0; s < end; s++) {
    const Step& step = plan.steps[static_cast<size_t>(s)];
    for (int i : step.in) touch(i, s);
    // Storing to a state does not extend its lifetime: the state is only read before.
    if (!is_state_store(plan, step))
      for (int i : step.out) touch(i, s);
    if (step.kind == Step::Kind::submit) running.push_back(step.region);
    // A queue runs its regions in order, so regions before a finished one are finished too.
    if (step.kind == Step::Kind::wait)
      std::erase_if(running, [&](int r) {
        return r <= step.region && plan.regions[static_cast<size_t>(r)].device == step.device;
      });
    // When host and device share memory, an upload is written at once, while other regions may still run.
    if (step.kind == Step::Kind::transfer && places[static_cast<size_t>(step.out[0])].device != nullptr)
      for (int r : running)
        if (const Region& other = plan.regions[static_cast<size_t>(r)]; other.device == step.device)
          touch(step.out[0], other.first);
  }
  // A region's inputs cross before its first step, its results after its last one.
  for (const Region& r : plan.regions) {
    for (int i : r.uploads) touch(i, r.first);
    for (int i : r.downloads) touch(i, r.submit);
  }
  // A device that computes an operation while its result is read needs its inputs until then.
  for (const Region& r : plan.regions) {
    std::unordered_map<int, int> reader;  // by place: the last one
    for (int s : r.steps)
      for (int i : plan.steps[static_cast<size_t>(s)].in) reader[i] = s;
    for (int s : r.steps) {
      const Step& step = plan.steps[static_cast<size_t>(s)];
      const auto at = step.out.size() == 1 ? reader.find(step.out[0]) : reader.end();
      if (at == reader.end() || at->second <= s) continue;
      if (r.device->may_join(*step.choice, *plan.steps[static_cast<size_t>(at->second)].choice))
        for (int i : step.in) touch(i, at->second);
    }
  }
  for (int i : plan.outputs) touch(i, end);
  if (pending == nullptr) return;
  for (int i : plan.pending_step.in) touch(i, end);
  for (const ir::Value* v : used_from(*plan.block, *pending))
    if (auto it = plan.place_of.find(v); it != plan.place_of.end()) touch(it->second, end);
}

}  // namespace moka::plan
