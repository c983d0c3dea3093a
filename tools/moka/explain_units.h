// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.h"
#include "moka/compute_plan.h"

namespace moka::cli {

/// Regions, transfers, and each unit's estimate or refusal for each operation; "" when only one unit was asked.
std::string units_text(const ComputePlan& plan, bool all);
/// How many operations each pin matches; "" without pins.
std::string pins_text(const ComputePlan& plan);
/// The operations that `unit` ("gpu") refuses, according to the plan's bids.
std::string off_unit_text(const ComputePlan& plan, const std::string& unit);

/// The same as JSON: "cost", "pins", "regions" and "transfers".
void add_units(const ComputePlan& plan, Json& json);
/// "unit", "takes", "staysOff", "doubted", "doubts".
void add_off_unit(const ComputePlan& plan, const std::string& unit, Json& json);

}  // namespace moka::cli
