#include <algorithm>
#include <climits>
#include <numeric>

#include "plan/plan.h"

namespace moka::plan {

namespace {

constexpr size_t kAlignment = 64, kPage = 4096;

size_t align(size_t n, size_t to = kAlignment) { return (n + to - 1) / to * to; }

/// A stretch of the arena that lives from step `first` to step `last`.
struct Block {
  size_t bytes;
  int first, last;
  size_t* offset;
};

bool together(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

Status assign_memory(Plan& plan, std::span<size_t> scratch_bytes, const PlanOptions& options) {
  std::vector<Block> blocks;
  int end = static_cast<int>(plan.steps.size());
  for (size_t i = 0; i < plan.places.size(); i++) {
    Place& p = plan.places[i];
    if (p.storage == Storage::arena && p.root == static_cast<int>(i) && p.last >= 0)
      blocks.push_back(
          {align(p.bytes), options.reuse_buffers ? p.first : 0, options.reuse_buffers ? p.last : end, &p.offset});
  }
  for (size_t s = 0; s < scratch_bytes.size(); s++)
    if (scratch_bytes[s] > 0)
      blocks.push_back(
          {align(scratch_bytes[s]), static_cast<int>(s), static_cast<int>(s), &plan.steps[s].scratch_offset});

  // Threads keep theirs from step to step: over what another one wrote it would be slow to write.
  const auto threads = static_cast<size_t>(options.threads);
  size_t kept = 0;
  for (Step& step : plan.steps) {
    const size_t bytes = step.choice ? step.choice->thread_scratch : 0;
    plan.thread_step = std::max(plan.thread_step, align(bytes, threads > 1 ? kPage : kAlignment));
    const auto s = static_cast<int>(&step - plan.steps.data());
    if (threads == 1 && bytes > 0) blocks.push_back({align(bytes), s, s, &step.threads_offset});
  }
  if (threads > 1 && plan.thread_step > 0) blocks.push_back({threads * plan.thread_step, 0, end, &kept});

  // Largest first, each at the lowest offset free during its life.
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return blocks[a].bytes != blocks[b].bytes ? blocks[a].bytes > blocks[b].bytes : a < b;
  });
  std::vector<size_t> placed;  // by offset
  size_t total = 0;
  for (size_t k : order) {
    Block& b = blocks[k];
    if (__builtin_add_overflow(plan.largest_unshared_bytes, b.bytes, &plan.largest_unshared_bytes))
      return fail(ErrorCode::out_of_budget, "the plan needs more memory than can be addressed");
    size_t at = 0;
    for (size_t other : placed) {
      const Block& o = blocks[other];
      if (!together(b, o)) continue;
      if (*o.offset >= at + b.bytes) break;
      at = std::max(at, *o.offset + o.bytes);
    }
    *b.offset = at;
    total = std::max(total, at + b.bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), at, [&](size_t v, size_t i) { return v < *blocks[i].offset; }),
        k);
  }
  plan.arena_bytes = total;
  if (threads > 1)
    for (Step& step : plan.steps) step.threads_offset = kept;
  for (Place& p : plan.places) {
    const Place& r = plan.places[static_cast<size_t>(p.root)];
    p.offset = r.offset + p.delta;
    if (p.storage == Storage::arena && r.storage != Storage::arena) p.storage = r.storage;
  }
  if (options.budget && total > options.budget->limit())
    return fail(ErrorCode::out_of_budget, "the plan needs an arena of ", total, " bytes; the memory budget is ",
                options.budget->limit());
  return {};
}

Status check(const Plan& plan) {
  struct Live {
    size_t begin, end;
    int first, last, place;
  };
  std::vector<Live> live;
  for (size_t i = 0; i < plan.places.size(); i++) {
    const Place& p = plan.places[i];
    if (p.storage != Storage::arena || p.root != static_cast<int>(i) || p.last < 0 || p.bytes == 0) continue;
    if (p.offset % kAlignment != 0 || p.offset + p.bytes > plan.arena_bytes)
      return fail(ErrorCode::internal, "place ", i, " at ", p.offset, " + ", p.bytes, " is outside of the arena of ",
                  plan.arena_bytes);
    live.push_back({p.offset, p.offset + p.bytes, p.first, p.last, static_cast<int>(i)});
  }
  for (size_t s = 0; s < plan.steps.size(); s++) {
    const Step& step = plan.steps[s];
    if (step.choice && step.choice->scratch > 0)
      live.push_back({step.scratch_offset, step.scratch_offset + step.choice->scratch, static_cast<int>(s),
                      static_cast<int>(s), -1});
    if (step.choice && step.choice->thread_scratch > 0)
      live.push_back(
          {step.threads_offset,
           step.threads_offset + plan.thread_step * static_cast<size_t>(step.threads - 1) + step.choice->thread_scratch,
           static_cast<int>(s), static_cast<int>(s), -1});
  }
  std::sort(live.begin(), live.end(), [](const Live& a, const Live& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < live.size(); i++)
    for (size_t j = i + 1; j < live.size() && live[j].begin < live[i].end; j++)
      if (live[i].first <= live[j].last && live[j].first <= live[i].last)
        return fail(ErrorCode::internal, "places ", live[i].place, " and ", live[j].place,
                    " overlap in the arena during steps ", std::max(live[i].first, live[j].first), " to ",
                    std::min(live[i].last, live[j].last));

  std::vector<bool> written(plan.places.size());
  for (size_t i = 0; i < plan.places.size(); i++) {
    Storage s = plan.places[i].storage;
    written[i] = s == Storage::external || s == Storage::constant || s == Storage::prepared;
  }
  auto root = [&](int i) { return static_cast<size_t>(plan.places[static_cast<size_t>(i)].root); };
  for (size_t s = 0; s < plan.steps.size(); s++) {
    const Step& step = plan.steps[s];
    for (size_t i = 0; i < step.in.size(); i++) {
      auto p = static_cast<size_t>(step.in[i]);
      if (!written[p] && !written[root(step.in[i])])
        return fail(ErrorCode::internal, "step ", s, " reads place ", p, " before it is written");
      if (step.choice && plan.places[p].storage != Storage::prepared && plan.places[p].type.is_tensor() &&
          !(plan.places[p].layout == (i < step.choice->in.size() ? step.choice->in[i] : kernel::Layout{})))
        return fail(ErrorCode::internal, "step ", s, " reads place ", p, " in another layout than it has");
    }
    for (int i : step.out) written[static_cast<size_t>(i)] = written[root(i)] = true;
  }
  for (int i : plan.outputs)
    if (!written[static_cast<size_t>(i)] && !written[root(i)])
      return fail(ErrorCode::internal, "output place ", i, " is never written");
  return {};
}

}  // namespace moka::plan
