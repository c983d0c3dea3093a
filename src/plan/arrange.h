// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plan/assignment.h"
#include "plan/plan.h"
#include "plan/prepare.h"

namespace moka::plan {

/// A sequence, and what its kernels must still prepare.
struct Arranged {
  Sequence sequence;
  std::vector<Preparation> preparations;
};

/// Makes the steps of a block. `parent`: the plan whose values the block uses; nullptr: none. Errors: unsupported when
/// no device takes an operation in the layouts that its inputs have.
Result<Arranged> arrange(const Resolved& resolved, const Claims& claims, const Assignment& assignment,
                         const Plan* parent, const PlanOptions& options, bool own_outputs);

}  // namespace moka::plan
