#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/program.h"
#include "kernel/kernel.h"
#include "kernel/rates.h"
#include "plan/choices.h"
#include "plan/constants.h"

namespace moka::plan {

/// Bytes of the plans that the caches of one model keep.
struct KeptPlans {
  size_t limit = SIZE_MAX;
  std::atomic<size_t> bytes{0};
};

/// What plans of one model share.
struct PlanOptions {
  std::vector<const kernel::Device*> devices;  ///< in order of preference; the last one is `reference`
  int threads = 1;
  bool reuse_buffers = true;  ///< false: every value has its own memory, for checking
  size_t cached_shapes = 8;   ///< plans kept per block, least recently used dropped first
  /// Beyond its limit each block keeps only the plan used last. nullptr: no limit.
  std::shared_ptr<KeptPlans> kept;
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<ConstantPool> constants;
  std::shared_ptr<KernelChoices> choices;  ///< nullptr: the kernels' rules decide
  /// The device that must run an operation; nullptr where its cost decides. Optional.
  std::function<const kernel::Device*(const ir::Op&)> pinned_device;
  bool observed = false;                       ///< all that devices compute is also brought to the host
  std::shared_ptr<const kernel::Rates> rates;  ///< nullptr: the conservative table
  bool strict = false;  ///< an operation that the device refuses to which it is pinned is an error
};

/// Where the bytes of a place are.
enum class Storage : uint8_t {
  arena,     ///< at Place::offset of the frame's arena in the memory of Place::device
  constant,  ///< Place::constant
  external,  ///< given when the plan starts: an input, a state, or a place of the enclosing plan
  object,    ///< Place::object of the frame: strings, lists, dictionaries
  prepared,  ///< nowhere: only a kernel's `prepare` reads it
};

/// One value, or a copy of one in another layout, in one plan.
struct Place {
  const ir::Value* value = nullptr;
  ir::Type type;
  kernel::Layout layout;
  const kernel::Device* device = nullptr;  ///< whose memory it is in; nullptr: the host's
  int region = -1;                         ///< of a device: the region that writes it
  Storage storage = Storage::arena;
  int root = -1;      ///< the place whose storage it shares; itself when it has its own
  size_t delta = 0;   ///< bytes from the root's first to its own
  size_t bytes = 0;   ///< of the root's storage
  size_t offset = 0;  ///< in the arena
  int object = -1;
  int first = 0, last = 0;  ///< steps that write it first and read it last; of roots, over all that share
  ir::Tensor constant;
  std::shared_ptr<const kernel::Buffer> buffer;  ///< of constants of a device
};

class Plan;

/// Plans of one block for concrete types, a few of them kept, least recently used dropped first. Thread-safe: a plan is
/// made outside of the lock, so that callers whose plan is known never wait, and callers that need the same new plan
/// wait for the one that makes it.
class PlanCache {
 public:
  using Key = std::vector<ir::Type>;
  PlanCache() = default;
  PlanCache(const PlanCache&) = delete;
  ~PlanCache();
  /// The plan for `key`; `make()` when there is none. A hit allocates nothing.
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
  /// A plan that one caller makes and others wait for.
  struct Making {
    std::mutex mutex;
    std::shared_ptr<const Plan> plan;  ///< null: not made yet, or it failed
  };
  /// Null: `making` is where to make it.
  std::shared_ptr<const Plan> find(const Key& key, std::shared_ptr<Making>& making);
  void finish(const Key& key, const std::shared_ptr<Making>& making, const PlanOptions& options);
  void forget_last();
  mutable std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<const Plan>>> plans_;
  std::list<std::pair<Key, std::shared_ptr<Making>>> makings_;
  std::shared_ptr<KeptPlans> kept_;
};

/// What one device says of an operation.
struct Bid {
  const kernel::Device* device = nullptr;
  double seconds = 0;   ///< as its kernel estimates
  std::string refusal;  ///< not empty: it does not take the operation
};

struct Step {
  /// placed: nothing to do, since its inputs or outputs are parts of one value's memory. transfer: in[0] of the host
  /// goes to out[0] of the region's device before it is submitted, or the other way round after it was waited for.
  enum class Kind : uint8_t { run, placed, convert, cond, loop, transfer, submit, wait };
  Kind kind = Kind::run;
  int region = -1;  ///< of `run` and `convert`: part of it, not a step of the host; of the last three: which
  const ir::Op* op = nullptr;
  const kernel::Device* device = nullptr;
  std::shared_ptr<const kernel::KernelChoice> choice;  ///< of `run` and `placed`, and of `convert` in a region
  int threads = 1;                                     ///< that share its tiles
  std::vector<int> in, out;                            ///< places
  std::vector<uint32_t> first_arg;                     ///< as OpCall wants it
  size_t scratch_offset = 0, threads_offset = 0;       ///< in the arena: the step's scratch, that of its threads
  std::vector<Refusal> refusals;
  ChosenBy by = ChosenBy::rule;
  std::shared_ptr<const std::vector<Bid>> bids;    ///< where several devices were asked
  std::shared_ptr<const Measurement> measurement;  ///< as ChosenKernel's
  std::shared_ptr<PlanCache> blocks[2];            ///< cond: then, else; loop: condition, body
};

/// Why the device does not run the step; "" where it was not asked or did not refuse.
std::string refusal_of(const Step& step, const kernel::Device& device);

/// Steps that a device runs as one submission.
struct Region {
  const kernel::Device* device = nullptr;
  int first = 0, submit = 0;   ///< its first step of any kind, and the one that submits it
  std::vector<int> steps;      ///< `run` and `convert`, in order
  std::vector<int> uploads;    ///< places that the host writes before it is submitted
  std::vector<int> downloads;  ///< places that the host reads after it is done
};

/// The memory that a plan needs of a device.
struct DeviceArena {
  const kernel::Device* device = nullptr;
  size_t bytes = 0;
};

/// What the choice between units compared, and why it cut where it did. For reports.
struct Decision {
  double compute = 0, transfers = 0, launches = 0;  ///< seconds
  double on_host = 0;                               ///< seconds of all on the host; infinite: it cannot
  bool is_optimal = false;
  struct Region {
    double launch = 0, saves = 0;  ///< seconds; as AssignedRegion's
  };
  std::vector<Region> regions;
  std::unordered_map<const ir::Op*, int> region_of;
  /// By value and whether it goes to the host: why it moves.
  std::map<std::pair<const ir::Value*, bool>, std::string> reasons;
};

/// Immutable steps for one block under concrete types. Where a shape can be known only from values, the plan ends
/// early at `pending`, and goes on in a plan of `continuations` under the types just learned.
class Plan {
 public:
  const ir::Block* block = nullptr;
  const Plan* parent = nullptr;  ///< the enclosing or preceding plan; alive as long as this one is used
  std::vector<Place> places;
  std::vector<Step> steps;
  std::vector<int> inputs;                   ///< place of each block input; first segments only
  std::vector<std::pair<int, int>> imports;  ///< (place, place of the parent) patched before running
  std::vector<int> outputs;                  ///< place of each block output; complete plans only
  bool own_outputs = false;                  ///< see plan_block
  std::vector<Region> regions;
  std::vector<DeviceArena> device_arenas;
  std::shared_ptr<const Decision> decision;  ///< nullptr: nothing was to choose
  size_t arena_bytes = 0, objects = 0;       ///< of the host
  size_t thread_step = 0;                    ///< bytes of scratch for each thread
  size_t largest_unshared_bytes = 0;         ///< arena bytes if nothing shared memory, for reports

  const ir::Op* pending = nullptr;  ///< the operation whose output types are not known yet
  bool pending_runs_first = false;  ///< control flow: run it to learn its types
  Step pending_step;                ///< its inputs (and blocks)
  std::unique_ptr<PlanCache> continuations;
  bool is_complete() const { return pending == nullptr; }
  std::vector<ir::Type> output_types() const;

  std::unordered_map<const ir::Value*, int> place_of;

  /// What it takes beside what all plans of a model share: itself, and results that its types make constant.
  size_t bytes() const;
};

/// Plans `block` for inputs of these types. `parent`: the plan of the enclosing block, nullptr for a function.
/// `own_outputs`: outputs are never block inputs themselves but copies (loop bodies need it).
Result<std::shared_ptr<const Plan>> plan_block(const ir::Block& block, std::span<const ir::Type> inputs,
                                               const Plan* parent, const PlanOptions& options,
                                               bool own_outputs = false);
/// Goes on behind plan.pending, whose outputs have these types.
Result<std::shared_ptr<const Plan>> plan_rest(const Plan& plan, std::span<const ir::Type> outputs,
                                              const PlanOptions& options);

/// Makes `part` the bytes of `whole` from `offset` on.
void place_in(Place& part, const Place& whole, size_t offset);
/// Values that are joined later get their place in what they are joined to, each in one at most; steps that have
/// nothing left to copy become `placed`. Before lifetimes are known.
void place_parts(Plan& plan);
/// Results take over the storage of inputs that are read for the last time, where the kernel allows it.
void share_in_place(Plan& plan);
/// Steps of all regions.
void find_regions(Plan& plan);
/// First and last steps of all places. `pending`: where the plan ends early.
void find_lifetimes(Plan& plan, const ir::Op* pending);
/// Offsets for all arena places and scratch of `plan`; sets arena_bytes and device_arenas. Errors: out_of_budget.
Status assign_memory(Plan& plan, std::span<size_t> scratch_bytes, const PlanOptions& options);
/// Refuses a plan that breaks a rule. Places of one memory that live at the same time do not overlap and lie inside
/// their arena. Everything is written before it is read, in the layout and the memory in which it is read, and a
/// region's results are read after the wait for it. Error internal names the places.
Status check(const Plan& plan);

}  // namespace moka::plan
