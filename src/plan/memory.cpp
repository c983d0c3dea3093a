#include "kernel/memory.h"

#include <algorithm>
#include <climits>
#include <numeric>

#include "plan/plan.h"

namespace moka::plan {

namespace {

constexpr size_t kBlockAlignment = 64, kPage = 4096;

size_t align(size_t n, size_t to = kBlockAlignment) { return (n + to - 1) / to * to; }

/// A range of the arena that is in use from step `first` to step `last`.
struct Block {
  size_t bytes;
  int first, last;
  size_t* offset;
};

bool together(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

/// Places the blocks, the largest first, each at the lowest offset that is free during its life. Returns the total size
/// and adds the size without sharing to `unshared`.
Result<size_t> place_blocks(std::vector<Block>& blocks, size_t& unshared) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return blocks[a].bytes != blocks[b].bytes ? blocks[a].bytes > blocks[b].bytes : a < b;
  });
  std::vector<size_t> placed;  // in order of offset
  size_t total = 0;
  for (size_t k : order) {
    Block& b = blocks[k];
    if (__builtin_add_overflow(unshared, b.bytes, &unshared))
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
  return total;
}

/// The values and scratch that `device` holds (nullptr: the host).
std::vector<Block> blocks_of(Plan& plan, const kernel::Device* device, bool reuse, size_t alignment) {
  std::vector<Block> blocks;
  const int end = count_steps(plan);
  for (size_t i = 0; i < plan.places.size(); i++) {
    Place& p = plan.places[i];
    if (p.storage == Storage::arena && p.device == device && p.root == static_cast<int>(i) && p.last >= 0)
      blocks.push_back({align(p.bytes, alignment), reuse ? p.first : 0, reuse ? p.last : end, &p.offset});
  }
  for_each_step(plan, [&]<class One>(int s, One& step, int region) {
    if constexpr (std::is_same_v<One, Run>)
      if (step.choice->scratch > 0 && (region >= 0 ? step.device : nullptr) == device)
        blocks.push_back({align(step.choice->scratch, alignment), s, s, &step.scratch_offset});
  });
  return blocks;
}

}  // namespace

Status assign_memory(Plan& plan, const PlanOptions& options) {
  std::vector<Block> blocks = blocks_of(plan, nullptr, options.reuse_buffers, kBlockAlignment);
  const int end = count_steps(plan);

  // Each thread keeps its scratch from step to step, because memory that another thread wrote is slower to write.
  const auto threads = static_cast<size_t>(options.threads);
  size_t kept = 0;
  for_each_step(plan, [&]<class One>(int s, One& step, int region) {
    if constexpr (std::is_same_v<One, Run>) {
      const size_t bytes = region < 0 ? step.choice->thread_scratch : 0;
      plan.thread_step = std::max(plan.thread_step, align(bytes, threads > 1 ? kPage : kBlockAlignment));
      if (threads == 1 && bytes > 0) blocks.push_back({align(bytes), s, s, &step.threads_offset});
    }
  });
  if (threads > 1 && plan.thread_step > 0) blocks.push_back({threads * plan.thread_step, 0, end, &kept});

  plan.arena_bytes = MOKA_TRY(place_blocks(blocks, plan.largest_unshared_bytes));
  for (const Region& r : plan.regions) {
    const auto same = [&](const DeviceArena& a) { return a.device == r.device; };
    if (std::any_of(plan.device_arenas.begin(), plan.device_arenas.end(), same)) continue;
    blocks = blocks_of(plan, r.device, options.reuse_buffers, r.device->memory()->alignment());
    plan.device_arenas.push_back({r.device, MOKA_TRY(place_blocks(blocks, plan.largest_unshared_bytes))});
  }
  if (threads > 1)
    for (Step& step : plan.steps)
      if (Run* run = std::get_if<Run>(&step)) run->threads_offset = kept;
  for (Place& p : plan.places) {
    const Place& r = plan.places[static_cast<size_t>(p.root)];
    p.offset = r.offset + p.delta;
    if (p.storage == Storage::arena && r.storage != Storage::arena) p.storage = r.storage;
  }
  if (options.budget && plan.arena_bytes > options.budget->limit())
    return fail(ErrorCode::out_of_budget, "the plan needs an arena of ", plan.arena_bytes,
                " bytes; the memory budget is ", options.budget->limit());
  return {};
}

}  // namespace moka::plan
