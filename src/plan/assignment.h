// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/assign.h"
#include "plan/claim.h"

/// The third of the values that a plan is made of: the cheapest cut over the claims. It gives each operation a device,
/// a region and its turn.
namespace moka::plan {

/// The costs that the choice between units compared, and the reasons for transfers. Used in reports.
struct Decision {
  double compute = 0, transfers = 0, launches = 0;  ///< seconds
  double on_host = 0;                               ///< seconds when everything runs on the host; infinite: it cannot
  bool is_optimal = false;
  struct Region {
    double launch = 0, saves = 0;  ///< in seconds, as in AssignedRegion
  };
  std::vector<Region> regions;
  std::unordered_map<const ir::Op*, int> region_of;
  /// By value and whether it goes to the host: why it moves.
  std::map<std::pair<const ir::Value*, bool>, std::string> reasons;
};

struct Assignment {
  /// By operation of Resolved::ops: the device in whose memory it runs; nullptr: host memory.
  std::vector<const kernel::Device*> device;
  std::vector<int> order;                    ///< indices of operations; operations of one region are adjacent
  std::vector<int> region;                   ///< by operation; -1: on the host
  std::shared_ptr<const Decision> decision;  ///< nullptr: there was no choice

  bool is_on_host() const { return decision == nullptr; }
};

/// The cheapest place for each operation, including transfers, within the limits of pins. Everything is on the host if
/// there is no other memory. Errors: those of assign(const CostGraph&).
Result<Assignment> assign(const Resolved& resolved, const Claims& claims, const PlanOptions& options);

/// Refuses an assignment that breaks a rule: each operation has one place in the order, after what it reads; those with
/// a device are in a region, and a region is not interrupted. Error internal names the operation.
Status check(const Assignment& assignment, const Resolved& resolved);

/// Cost in seconds of violating a pin: more than any model takes.
inline constexpr double kUnpinned = 1e6;
/// Why each transfer of the cut happens.
std::vector<std::string> reasons_of(const Resolved& resolved, const Claims& claims, const CostGraph& graph,
                                    const GraphAssignment& cut);

}  // namespace moka::plan
