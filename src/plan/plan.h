// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plan/assignment.h"
#include "plan/options.h"
#include "plan/plan_cache.h"
#include "plan/resolve.h"
#include "plan/sequence.h"

/// The last of the values that a plan is made of: a sequence, and where its places lie in memory. plan_block() makes
/// all of them, one from the other.
namespace moka::plan {

class LatePreparation;
struct Preparation;

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
  bool shares_host = false;  ///< places of the host live long enough for regions to use them where they lie
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
