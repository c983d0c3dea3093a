#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/assign.h"
#include "plan/plan.h"

/// Decides which device runs which operation of a block. A block for several devices is planned twice: first a draft
/// for the host, in which each device estimates every operation; then `place` decides and the real plan is made.
namespace moka::plan {

/// One operation of a draft, in the order of the block.
struct DraftOp {
  const ir::Op* op = nullptr;
  std::vector<Bid> bids;  ///< the host's bid first; the only one for control flow and states
  bool view = false;      ///< costs nothing on the device that has its input
};

struct Draft {
  std::vector<DraftOp> ops;
  /// sizes of values that operations read and produce, without constants
  std::unordered_map<const ir::Value*, size_t> bytes;
};

/// Where operations run and in which order they are planned. Operations that are not listed run on the host.
struct Placement {
  std::vector<const ir::Op*> order;
  std::vector<int> region;  ///< parallel to order: operations of one region are adjacent; -1: on the host
  std::unordered_map<const ir::Op*, const kernel::Device*> device;
  std::unordered_map<const ir::Op*, std::shared_ptr<const std::vector<Bid>>> bids;
  std::shared_ptr<const Decision> decision;
  bool is_whole = false;  ///< the plan does not end before the block

  const kernel::Device* of(const ir::Op& op) const {
    auto it = device.find(&op);
    return it == device.end() ? nullptr : it->second;
  }
  /// The device in whose memory the operation runs; nullptr: host memory.
  const kernel::Device* memory_of(const ir::Op& op) const {
    const kernel::Device* d = of(op);
    return d != nullptr && d->memory() != nullptr ? d : nullptr;
  }
};

/// Whether the device applies all epilogues that the kernel does not apply itself.
bool applies_epilogues(const kernel::Device& device, const kernel::KernelChoice& choice,
                       std::span<const ir::Epilogue> epilogue);
inline constexpr const char* kLeftEpilogue = "an epilogue that the device does not apply";

/// Cost in seconds of violating a pin: more than any model takes.
inline constexpr double kUnpinned = 1e6;
/// Why each transfer of the assignment happens.
std::vector<std::string> reasons_of(const Draft& draft, const CostGraph& graph, const Assignment& assignment);

/// Devices in host memory, in order of preference.
std::vector<const kernel::Device*> host_devices(const PlanOptions& options);
/// Devices with their own memory, in order of preference.
std::vector<const kernel::Device*> accelerators(const PlanOptions& options);
/// The cheapest place for each operation of the draft, including transfers, within the limits of pins. Errors: those of
/// `assign`.
Result<Placement> place(Draft draft, const PlanOptions& options);

}  // namespace moka::plan
