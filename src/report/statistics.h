// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "moka/report.h"

namespace moka::reporting {

/// The value at `fraction` (0 to 1) of sorted, nonempty samples, interpolated.
double percentile(std::span<const double> sorted, double fraction);
/// `samples`: not empty, in any order.
double median(std::vector<double> samples);
/// `samples`: not empty, in the order of time.
TimeStatistics statistics(std::vector<double> samples);

}  // namespace moka::reporting
