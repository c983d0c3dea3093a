// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json.h"
#include "moka/model.h"

namespace moka::cli {

/// The loaded function after the passes: {"graph", "operations", "folded", "operationsInSource", "remarks"}. "graph" is
/// as in the page's document, without weights. "operations" are the steps of the plan as in a report, without times.
Json passes_of(const Model& model);

}  // namespace moka::cli
