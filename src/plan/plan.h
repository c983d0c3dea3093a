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
  bool strict = false;  ///< error when a device refuses an operation that is pinned to it
  /// States whose first reader runs on a device stay in its memory: Frame::set_state gives their buffers.
  bool states_on_devices = false;
  /// The planes of an input that is an image; nullopt: it is not an image. Optional.
  std::function<std::optional<kernel::PlaneOrder>(const ir::Value&)> image_planes;
};

class LatePreparation;
class Plan;

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

/// An image input that a device unpacks.
struct PixelInput {
  size_t input = 0;         ///< index in Plan::inputs
  int place = -1;           ///< of the packed pixels on the host, which are written as they are uploaded
  bool planes_read = true;  ///< something also reads the input's planes on the host
};

/// The memory that a plan needs on a device.
struct DeviceArena {
  const kernel::Device* device = nullptr;
  size_t bytes = 0;
};

/// Immutable steps for one block under concrete types. When a shape depends on values, the plan ends early at `pending`
/// and goes on in a plan of `continuations` for the types just learned.
class Plan {
 public:
  const ir::Block* block = nullptr;
  /// What the block computes. Kept while blocks or a continuation may be planned for other types; else nullptr.
  std::shared_ptr<const Resolved> resolved;
  size_t folded = 0;             ///< operations that are constants
  const Plan* parent = nullptr;  ///< the enclosing or preceding plan; must outlive this one
  std::vector<Place> places;
  std::vector<Step> steps;
  std::vector<int> inputs;                   ///< place of each block input; first segments only
  std::vector<std::pair<int, int>> imports;  ///< (place, place of the parent) pairs, patched before running
  std::vector<int> outputs;                  ///< place of each block output; complete plans only
  bool own_outputs = false;                  ///< see plan_block
  std::vector<Region> regions;
  std::vector<DeviceArena> device_arenas;
  std::vector<PixelInput> pixels;
  std::shared_ptr<const Decision> decision;  ///< nullptr: there was no choice
  std::shared_ptr<LatePreparation> late;     ///< nullptr: all kernels are prepared
  size_t arena_bytes = 0, objects = 0;       ///< totals of the host
  size_t thread_step = 0;                    ///< scratch bytes per thread
  size_t largest_unshared_bytes = 0;         ///< arena bytes without sharing, for reports

  std::optional<Pending> pending;  ///< the operation whose output types are not known yet
  std::unique_ptr<PlanCache> continuations;
  bool is_complete() const { return !pending; }
  /// The operation of `pending`.
  const ir::Op& pending_op() const { return *call_of(*pending)->op; }
  /// Whether it must run before its output types are known.
  bool pending_runs_first() const { return control_of(*pending) != nullptr; }
  std::vector<ir::Type> output_types() const;

  std::unordered_map<const ir::Value*, int> place_of;

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

/// Finds the value that a place of a plan holds, even if the place is a copy. The plan must outlive it.
class CopiedValues {
 public:
  explicit CopiedValues(const Plan& plan);
  /// nullptr: it holds no value, or a part of one.
  const ir::Value* of(int place) const;

 private:
  const Plan& plan_;
  std::vector<int> from_;  ///< by place: the place that it was copied from
};

/// Places `part` in the bytes of `whole` from `offset` on.
void place_in(Place& part, const Place& whole, size_t offset);
/// Puts values that are joined later into the value they are joined to, each into at most one. Steps that have nothing
/// left to copy become `placed`. Runs before lifetimes are known.
void place_parts(Plan& plan);
/// Lets results take over the storage of inputs at their last use, where the kernel allows it, and results that a state
/// is given at the end the storage of that state. Lifetimes are not known afterwards.
void share_in_place(Plan& plan);
/// Whether the step copies its input to a state in the memory of its device.
bool is_state_store(const Plan& plan, const DeviceConvert& step);
/// Computes the first and last step of all places.
void find_lifetimes(Plan& plan);
/// Assigns offsets to all arena places and scratch; sets arena_bytes and device_arenas. Errors: out_of_budget.
Status assign_memory(Plan& plan, const PlanOptions& options);
/// Refuses a plan that breaks a rule. Places that live at the same time in one memory do not overlap and lie inside
/// their arena. Everything is written before it is read, in the layout and memory of the reader, and a region's results
/// are read after the wait. Error internal names the places.
Status check(const Plan& plan);

}  // namespace moka::plan
