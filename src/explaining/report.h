// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "moka/compute_plan.h"
#include "plan/plan.h"
#include "runtime/model.h"

namespace moka::explaining {

using StepTimes = std::map<const plan::Step*, std::pair<double, int64_t>>;
/// `times`: seconds and runs of each step; nullptr when not measured.
ComputePlan report(const runtime::Model& model, const plan::Plan& plan, const StepTimes* times);
OperationList operations(const runtime::Model& model);

}  // namespace moka::explaining
