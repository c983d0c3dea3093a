// SPDX-License-Identifier: Apache-2.0
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

class Assigner {
 public:
  Assigner(const Sequence& sequence, const PlanOptions& options)
      : sequence_(sequence), options_(options), end_(count_steps(sequence)) {}

  Result<Memory> run() {
    const std::vector<Lifetime> lives = lifetimes(sequence_);
    memory_.places.resize(sequence_.places.size());
    memory_.steps.resize(static_cast<size_t>(end_));
    for (size_t i = 0; i < sequence_.places.size(); i++) {
      const Place& p = sequence_.places[i];
      Extent& e = memory_.places[i];
      e.life = lives[i];
      if (p.is<InArena>() && p.type.is_tensor())
        e.bytes = MOKA_TRY(kernel::storage_bytes(p.type.dtype(), p.type.shape(), p.layout));
    }
    MOKA_TRY(place_on_host());
    for (const Region& r : sequence_.regions) {
      const auto same = [&](const DeviceArena& a) { return a.device == r.device; };
      if (std::any_of(memory_.devices.begin(), memory_.devices.end(), same)) continue;
      std::vector<Block> blocks = blocks_of(r.device, r.device->memory()->alignment());
      memory_.devices.push_back({r.device, MOKA_TRY(place_blocks(blocks, memory_.unshared_bytes)),
                                 r.device->memory()->share_alignment() != 0});
    }
    for (size_t i = 0; i < sequence_.places.size(); i++) {
      const Place& p = sequence_.places[i];
      const Extent& root = memory_.places[static_cast<size_t>(p.root)];
      if (p.is<InArena>()) memory_.places[i] = {root.bytes, root.offset + p.delta, root.life};
    }
    return std::move(memory_);
  }

 private:
  /// The values and scratch that `device` holds (nullptr: the host).
  std::vector<Block> blocks_of(const kernel::Device* device, size_t alignment) {
    const bool reuse = options_.reuse_buffers;
    std::vector<Block> blocks;
    for (size_t i = 0; i < sequence_.places.size(); i++) {
      const Place& p = sequence_.places[i];
      Extent& e = memory_.places[i];
      if (p.is<InArena>() && p.device == device && p.root == static_cast<int>(i) && e.life.last >= 0)
        blocks.push_back({align(e.bytes, alignment), reuse ? e.life.first : 0, reuse ? e.life.last : end_, &e.offset});
    }
    for_each_step(sequence_, [&]<class One>(int s, const One& step, int region) {
      if constexpr (std::is_same_v<One, Run>)
        if (step.choice->scratch > 0 && (region >= 0 ? step.device : nullptr) == device)
          blocks.push_back({align(step.choice->scratch, alignment), s, s, &scratch(s).own});
    });
    return blocks;
  }

  Status place_on_host() {
    std::vector<Block> blocks = blocks_of(nullptr, kBlockAlignment);
    // Each thread keeps its scratch from step to step, because memory that another thread wrote is slower to write.
    const auto threads = static_cast<size_t>(options_.threads);
    size_t kept = 0;
    const auto for_each_run = [&](auto&& visit) {
      for_each_step(sequence_, [&]<class One>(int s, const One& step, int region) {
        if constexpr (std::is_same_v<One, Run>)
          if (region < 0) visit(s, step.choice->thread_scratch);
      });
    };
    for_each_run([&](int s, size_t bytes) {
      memory_.thread_step = std::max(memory_.thread_step, align(bytes, threads > 1 ? kPage : kBlockAlignment));
      if (threads == 1 && bytes > 0) blocks.push_back({align(bytes), s, s, &scratch(s).threads});
    });
    if (threads > 1 && memory_.thread_step > 0) blocks.push_back({threads * memory_.thread_step, 0, end_, &kept});
    memory_.arena_bytes = MOKA_TRY(place_blocks(blocks, memory_.unshared_bytes));
    if (threads > 1) for_each_run([&](int s, size_t) { scratch(s).threads = kept; });
    return {};
  }

  Scratch& scratch(int step) { return memory_.steps[static_cast<size_t>(step)]; }

  const Sequence& sequence_;
  const PlanOptions& options_;
  const int end_;  ///< the number after the last step
  Memory memory_;
};

}  // namespace

Result<Memory> assign_memory(const Sequence& sequence, const PlanOptions& options) {
  Memory memory = MOKA_TRY(Assigner(sequence, options).run());
  if (options.budget && memory.arena_bytes > options.budget->limit())
    return fail(ErrorCode::out_of_budget, "the plan needs an arena of ", memory.arena_bytes,
                " bytes; the memory budget is ", options.budget->limit());
  return memory;
}

}  // namespace moka::plan
