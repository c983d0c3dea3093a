#pragma once

#include <string>

#include "json.h"
#include "moka/compute_plan.h"

namespace moka::cli {

/// Regions, transfers and what each unit says of each operation; "" where one unit was asked.
std::string units_text(const ComputePlan& plan, bool all);
/// What stays off `unit` ("gpu") and why, as the plan's bids say.
std::string off_unit_text(const ComputePlan& plan, const std::string& unit);

/// The same in JSON: "cost", "regions" and "transfers".
void add_units(const ComputePlan& plan, Json& json);
/// "unit", "takes", "staysOff".
void add_off_unit(const ComputePlan& plan, const std::string& unit, Json& json);

}  // namespace moka::cli
