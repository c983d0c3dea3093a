#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/program.h"
#include "kernel/kernel.h"
#include "kernel/rates.h"
#include "plan/assignment.h"
#include "plan/choices.h"
#include "plan/constants.h"
#include "plan/resolve.h"
#include "plan/sequence.h"

namespace moka::plan {

/// Bytes of the plans that the caches of one model keep.
struct KeptPlans {
  size_t limit = SIZE_MAX;
  std::atomic<size_t> bytes{0};
};

/// Options that the plans of one model share.
struct PlanOptions {
  std::vector<const kernel::Device*> devices;  ///< in order of preference; the last one is `reference`
  int threads = 1;
  bool reuse_buffers = true;  ///< false: values never share memory; for debugging
  size_t cached_shapes = 8;   ///< plans kept per block; the least recently used is dropped first
  /// When the plans exceed its limit, each block keeps only its most recent plan. nullptr: no limit.
  std::shared_ptr<KeptPlans> kept;
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<ConstantPool> constants;
  std::shared_ptr<KernelChoices> choices;  ///< nullptr: the kernels' rules decide
  /// The device that an operation is pinned to; nullptr: its cost decides. Optional.
  std::function<const kernel::Device*(const ir::Op&)> pinned_device;
  bool observed = false;                       ///< results on devices are also copied to the host
  std::shared_ptr<const kernel::Rates> rates;  ///< nullptr: the conservative table
  /// Kernels with KernelDef::low_memory run what they can.
  bool low_memory = false;
  /// A function's plan leaves what it can of its kernels' preparation to later runs (plan/late.h).
  bool prepare_late = false;
  /// Plans keep what their kernels need to be prepared again (plan::renew).
  bool renewable = false;
  bool strict = false;  ///< error when a device refuses an operation that is pinned to it
  /// States whose first reader runs on a device stay in its memory: Frame::set_state gives their buffers.
  bool states_on_devices = false;
  /// The planes of an input that is an image; nullopt: it is not an image. Optional.
  std::function<std::optional<kernel::PlaneOrder>(const ir::Value&)> image_planes;
};

class LatePreparation;
struct Plan;
struct Preparation;

/// Keeps a few plans of one block, each for concrete types. Drops the least recently used first. Thread-safe: plans are
/// made outside the lock, so callers with a known plan never wait, and callers that need the same new plan wait for the
/// one that makes it.
class PlanCache {
 public:
  using Key = std::vector<ir::Type>;
  PlanCache() = default;
  PlanCache(const PlanCache&) = delete;
  ~PlanCache();
  /// The plan for `key`; calls `make()` when there is none. A hit allocates nothing.
  template <class Make>
  Result<std::shared_ptr<const Plan>> get(const Key& key, const PlanOptions& options, Make&& make) {
    std::shared_ptr<Making> making;
    if (auto found = find(key, making)) return found;
    std::lock_guard lock(making->mutex);
    if (making->plan != nullptr) return making->plan;
    Result<std::shared_ptr<const Plan>> made = make();
    if (made.ok()) making->plan = *made;
    finish(key, making, options);
    return made;
  }
  std::vector<std::shared_ptr<const Plan>> snapshot() const;

 private:
  /// A plan that one caller makes while others wait for it.
  struct Making {
    std::mutex mutex;
    std::shared_ptr<const Plan> plan;  ///< null: not finished, or it failed
  };
  /// Returns the cached plan. Null: not in the cache; `making` is set to the entry where it is to be made.
  std::shared_ptr<const Plan> find(const Key& key, std::shared_ptr<Making>& making);
  void finish(const Key& key, const std::shared_ptr<Making>& making, const PlanOptions& options);
  void forget_last();
  mutable std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<const Plan>>> plans_;
  std::list<std::pair<Key, std::shared_ptr<Making>>> makings_;
  std::shared_ptr<KeptPlans> kept_;
};

/// The bytes of a place in an arena.
struct Extent {
  size_t bytes = 0;   ///< of the root's storage
  size_t offset = 0;  ///< in the arena
  Lifetime life;      ///< of the root; last < 0: nothing uses it, so it has no bytes
};

/// The offsets of a step's scratch in the arena.
struct Scratch {
  size_t own = 0;      ///< of the kernel
  size_t threads = 0;  ///< of the first thread; the others' follow at Memory::thread_step
};

/// The memory that a plan needs on a device.
struct DeviceArena {
  const kernel::Device* device = nullptr;
  size_t bytes = 0;
};

/// Where the places and the scratch of a sequence lie.
struct Memory {
  std::vector<Extent> places;  ///< parallel to Sequence::places
  std::vector<Scratch> steps;  ///< by number of the step
  size_t arena_bytes = 0;      ///< of the host
  size_t thread_step = 0;      ///< scratch bytes per thread
  size_t unshared_bytes = 0;   ///< of all arenas without sharing, for reports
  std::vector<DeviceArena> devices;
};

/// How a block runs under concrete types: immutable, and complete when it is made. When a shape depends on values, the
/// plan ends early and goes on in a plan of `continuations` for the types just learned.
struct Plan {
  Sequence sequence;
  Memory memory;
  /// What the block computes. Kept while blocks or a continuation may be planned for other types; else nullptr.
  std::shared_ptr<const Resolved> resolved;
  size_t folded = 0;                         ///< operations that are constants
  const Plan* parent = nullptr;              ///< the enclosing or preceding plan; must outlive this one
  std::shared_ptr<const Decision> decision;  ///< nullptr: there was no choice
  std::shared_ptr<LatePreparation> late;     ///< nullptr: all kernels are prepared
  std::shared_ptr<PlanCache> continuations;  ///< nullptr: the plan is complete
  /// The preparations of kernels that read parameters; null without PlanOptions::renewable.
  std::shared_ptr<std::vector<Preparation>> renewable;

  /// Bytes that this plan adds to what all plans of a model share: the plan itself and results that its types make
  /// constant.
  size_t bytes() const;
};

/// Plans `block` for inputs of these types. `parent`: the plan of the enclosing block; nullptr for a function.
/// `own_outputs`: outputs are copies and never block inputs themselves, as loop bodies need.
Result<std::shared_ptr<const Plan>> plan_block(const ir::Block& block, std::span<const ir::Type> inputs,
                                               const Plan* parent, const PlanOptions& options,
                                               bool own_outputs = false);
/// Plans a block that is resolved already.
Result<std::shared_ptr<const Plan>> plan_resolved(std::shared_ptr<const Resolved> resolved, const Plan* parent,
                                                  const PlanOptions& options, bool own_outputs);
/// Continues after plan.pending, whose outputs have these types.
Result<std::shared_ptr<const Plan>> plan_rest(const Plan& plan, std::span<const ir::Type> outputs,
                                              const PlanOptions& options);

/// Assigns offsets to all places in arenas and to scratch. Errors: out_of_budget.
Result<Memory> assign_memory(const Sequence& sequence, const PlanOptions& options);
/// Refuses memory that breaks a rule: places that live at the same time in one memory do not overlap, and lie inside
/// their arena. Error internal names the places.
Status check(const Sequence& sequence, const Memory& memory);

}  // namespace moka::plan
