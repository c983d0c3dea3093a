// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json.h"
#include "moka/energy.h"

namespace moka::cli {

/// "12.3 mJ"; "" without parts.
std::string format_energy(const Energy& energy);
/// "12.3 mJ a prediction: package-0 10.1 mJ, dram of package-0 2.2 mJ", or "not available: " and the reason.
std::string energy_text(const Energy& energy);
/// `joules`, `parts` and `missing`, as in a report.
Json energy_json(const Energy& energy);

}  // namespace moka::cli
