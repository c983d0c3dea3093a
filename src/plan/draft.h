#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/assign.h"
#include "plan/plan.h"

/// Which device runs which operation of a block. A block for several devices is planned twice: the draft plans it for
/// the host, asks each other device what every operation would cost there, and `place` decides; then the plan is made.
namespace moka::plan {

/// One operation of a draft, in the order of the block.
struct DraftOp {
  const ir::Op* op = nullptr;
  std::vector<Bid> bids;  ///< that of the host first; alone where only the host can: control flow and states
  bool view = false;      ///< costs nothing wherever its input is
};

struct Draft {
  std::vector<DraftOp> ops;
  std::unordered_map<const ir::Value*, size_t> bytes;  ///< of what operations read and make, but for constants
};

/// Where operations run and in which order they are planned. Those that are not named run on the host.
struct Placement {
  std::vector<const ir::Op*> order;
  std::vector<int> region;  ///< parallel to order: operations of one region are adjacent; -1: on the host
  std::unordered_map<const ir::Op*, const kernel::Device*> device;
  std::unordered_map<const ir::Op*, std::shared_ptr<const std::vector<Bid>>> bids;
  std::shared_ptr<const Decision> decision;

  const kernel::Device* of(const ir::Op& op) const {
    auto it = device.find(&op);
    return it == device.end() ? nullptr : it->second;
  }
  /// The device in whose memory it runs; nullptr: the host's.
  const kernel::Device* memory_of(const ir::Op& op) const {
    const kernel::Device* d = of(op);
    return d != nullptr && d->memory() != nullptr ? d : nullptr;
  }
};

/// Whether the device applies all epilogues that the kernel leaves.
bool applies_epilogues(const kernel::Device& device, const kernel::KernelChoice& choice,
                       std::span<const ir::Epilogue> epilogue);
inline constexpr const char* kLeftEpilogue = "an epilogue that the device does not apply";

/// What a pin to a device costs elsewhere, in seconds: more than any model.
inline constexpr double kUnpinned = 1e6;
/// Why the cut lies where each transfer of the assignment is.
std::vector<std::string> reasons_of(const Draft& draft, const CostGraph& graph, const Assignment& assignment);

/// Devices in host memory, in order of preference.
std::vector<const kernel::Device*> host_devices(const PlanOptions& options);
/// Devices with a memory of their own, in order of preference.
std::vector<const kernel::Device*> accelerators(const PlanOptions& options);
/// The cheapest place for each operation of the draft, transfers counted, where no pin says otherwise.
/// Errors: those of `assign`.
Result<Placement> place(Draft draft, const PlanOptions& options);

}  // namespace moka::plan
