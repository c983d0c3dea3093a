// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/cost_graph.h"

/// Assigns each operation to a unit of the machine, by the cheapest cut of a cost graph.
///
/// A unit is the host (unit 0), another device in host memory, or a device with its own memory that runs whole regions.
/// The cost of an assignment is the sum of
///
///     compute    seconds of every node on its unit
///     transfers  each value once for each unit that needs it and does not produce it
///     launches   one for each region
///
/// A region is a set of nodes of one unit that run as one submission. No path leaves a region and returns to it, and no
/// two regions wait for each other.
///
///     CostGraph graph{.units = {{"cpu"}, {"gpu", true, 50e-6}}};
///     graph.connect(0, 1, {10e-6, 12e9});
///     graph.seconds = {1e-3, 1e-4,   // node 0 on cpu, gpu
///                      1e-5, kRefused};
///     graph.values = {{.bytes = 4e6, .producer = 0, .consumers = {1}}};
///     GraphAssignment a = MOKA_TRY(assign(graph));   // a.unit[0] == 1, a.order, a.regions, a.transfers
namespace moka::plan {

/// The cheapest assignment. Deterministic: of equal ones it takes the one with more nodes on lower units. Exact for up
/// to about 12 nodes, and for more when costs differ widely; otherwise found by cuts and local search. Errors:
/// unsupported when no allowed unit runs a node, or its pinned unit does not (names the node); internal when the graph
/// contradicts itself.
Result<GraphAssignment> assign(const CostGraph& graph, const AssignOptions& options = {});

/// Change of the cost when a single node moves to `unit`. `compute` is kRefused when the unit refuses it.
AssignedCost change_if(const CostGraph& graph, const GraphAssignment& assignment, int node, int unit);

}  // namespace moka::plan
