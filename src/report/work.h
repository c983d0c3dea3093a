// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "moka/compute_plan.h"
#include "moka/model.h"

namespace moka::reporting {

/// The least work of one run of an operation, by the types of its inputs and results.
struct Work {
  double arithmetic = 0;  ///< operations, a multiply-add counted as two; 0: it only moves data, or is not known
  double bytes = 0;       ///< that it reads and writes: inputs with weights as the program has them, and results
};

/// The work of each operation of the plan itself. Conversions and control flow have none. An operation that was fused
/// into another one counts as one more pass over the result.
std::vector<Work> work_of(const ComputePlan& plan, const Model& model);

/// The seconds that work takes at least at these rates, and which of them decides it.
struct Roof {
  double seconds = 0;
  bool is_arithmetic = false;
};
/// `arithmetic`, `bytes`: a second; 0: not known.
Roof roof_of(const Work& work, double arithmetic, double bytes);

}  // namespace moka::reporting
