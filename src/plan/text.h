// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/plan.h"

/// The text forms of the values that a plan is made of. `moka explain --stage` prints them, and tests compare
/// them.
namespace moka::plan {

/// A line for each input, constant, operation and output. Blocks of control flow follow their operation.
std::string to_text(const Resolved& resolved);
/// A line for each operation with its device, and one for each kernel that a device offers or refuses.
std::string to_text(const Resolved& resolved, const Claims& claims, const Assignment& assignment);
/// A line for each step, with the places that it reads and writes.
std::string to_text(const Sequence& sequence);
/// A line for each place that has memory, in the order of their bytes.
std::string to_text(const Sequence& sequence, const Memory& memory);

/// The text of one stage ("resolve", "claim", "arrange", "memory") of a plan, of the plans of its blocks and of what
/// follows it. Errors: those of claim and assign, which are computed again; invalid_argument for another stage.
Result<std::string> stage_text(const Plan& plan, const PlanOptions& options, std::string_view stage);

}  // namespace moka::plan
