// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "diff/graph.h"

/// Operations of one graph that another graph has folded into others. `partners`: for each node of `g` that of `h`, -1
/// without one; `others`: for each node of `h` that of `g`.
namespace moka::diff {

/// The operations of `h` that compute what the partners of i's users read in i's place.
std::vector<int> feeders(const Graph& g, const Graph& h, const std::vector<int>& partners, int i);

/// Whether a resolved value is computed from `source` by a few operations without partners.
bool comes_after(const Graph& g, const std::vector<int>& partners, const ir::Value* value, const ir::Value* source);

/// For each node of `g` without a partner the operation of `h` whose result takes its place; -1: none.
std::vector<int> fused(const Graph& g, const Graph& h, const std::vector<int>& partners,
                       const std::vector<int>& others);

}  // namespace moka::diff
