// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/choices.h"
#include "plan/resolve.h"

/// The second of the values that a plan is made of: what each device offers for each operation.
namespace moka::plan {

struct Plan;

/// A device's estimate for an operation, or its refusal.
struct Bid {
  const kernel::Device* device = nullptr;
  double seconds = 0;   ///< estimate of its kernel
  std::string refusal;  ///< reason for refusing the operation; empty: it takes it
  kernel::Advice advice;
};

/// The kernel that runs an operation whose inputs arrive in these layouts.
struct Claim {
  ChosenKernel kernel;                  ///< without a choice: every device refuses
  std::vector<kernel::Layout> layouts;  ///< per input
};

struct OpClaims {
  /// By a device in host memory. nullopt: a view, or control flow.
  std::optional<Claim> host;
  std::vector<Claim> others;  ///< of each device with its own memory; empty: none was asked
  /// The host's bid first. nullptr: there is only one unit, or nothing to ask.
  std::shared_ptr<const std::vector<Bid>> bids;
  bool is_view = false;  ///< costs nothing on the device that has its input
};

/// Each kernel is asked in the layouts that its inputs have if the whole block runs on its device.
struct Claims {
  std::vector<const kernel::Device*> hosts;         ///< devices in host memory, in order of preference
  std::vector<const kernel::Device*> accelerators;  ///< devices with their own memory, in order of preference
  std::vector<OpClaims> ops;                        ///< parallel to Resolved::ops
};

/// Asks the devices of the options. `parent`: the plan whose values the block uses; nullptr: none. Errors: unsupported
/// when no device in host memory takes an operation; not_found when a pin names an unknown kernel.
Result<Claims> claim(const Resolved& resolved, const Plan* parent, const PlanOptions& options);

/// Asks the devices for one operation whose inputs arrive in these layouts. Errors: as choose_kernel.
Result<Claim> claim_in(const Resolved& resolved, const ResolvedOp& op, std::vector<kernel::Layout> layouts,
                       std::span<const kernel::Device* const> devices, const PlanOptions& options);

/// Asks one device. The kernel has no choice if it refuses.
Result<Claim> claim_on(const Resolved& resolved, const ResolvedOp& op, std::vector<kernel::Layout> layouts,
                       const kernel::Device& device, const PlanOptions& options);
/// Devices in host memory, the one that the operation is pinned to first.
std::vector<const kernel::Device*> hosts_for(const Claims& claims, const ir::Op& op, const PlanOptions& options);

/// Whether the device applies all epilogues that the kernel does not apply itself.
bool applies_epilogues(const kernel::Device& device, const kernel::KernelChoice& choice,
                       std::span<const ir::Epilogue> epilogue);
inline constexpr const char* kLeftEpilogue = "an epilogue that the device does not apply";

/// Devices in host memory, in order of preference.
std::vector<const kernel::Device*> host_devices(const PlanOptions& options);
/// Devices with their own memory, in order of preference.
std::vector<const kernel::Device*> accelerators(const PlanOptions& options);

}  // namespace moka::plan
