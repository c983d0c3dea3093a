// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "moka/compute_plan.h"

namespace moka::cli {

/// Seconds of `kernel` among the operation's candidates; 0 if it is not one.
double time_of(const PlannedOperation& operation, const std::string& kernel);
/// The operations whose kernels were not chosen by rule alone, with the candidates' times; empty if there are none.
std::string kernel_times_text(const ComputePlan& plan, bool all);

}  // namespace moka::cli
