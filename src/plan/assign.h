#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

/// Which unit of the machine computes each operation: the cheapest cut of a graph of costs.
///
/// A unit is the host (unit 0), another device in host memory, or one with a memory of its own that runs whole regions.
/// The cost of an assignment is the sum of
///
///     compute    seconds of every node on its unit
///     transfers  each value once for each unit that needs it and does not make it
///     launches   one for each region
///
/// A region is a set of nodes of one unit that run as one submission: no path leaves it and comes back, and no two
/// regions wait for each other.
///
///     CostGraph graph{.units = {{"cpu"}, {"gpu", true, 50e-6}}};
///     graph.connect(0, 1, {10e-6, 12e9});
///     graph.seconds = {1e-3, 1e-4,   // node 0 on cpu, gpu
///                      1e-5, kRefused};
///     graph.values = {{.bytes = 4e6, .producer = 0, .consumers = {1}}};
///     Assignment a = MOKA_TRY(assign(graph));   // a.unit[0] == 1, a.order, a.regions, a.transfers
namespace moka::plan {

/// CostGraph::seconds where a unit refuses a node.
constexpr double kRefused = HUGE_VAL;

struct CostUnit {
  std::string name;
  bool regions = false;  ///< runs regions in a memory of its own; else node by node, in host memory
  double launch = 0;     ///< seconds for each region
  bool allowed = true;
};

struct TransferCost {
  double latency = 0, bytes_per_second = HUGE_VAL;
  double seconds(double bytes) const { return latency + bytes / bytes_per_second; }
};

/// A value that one node or the host makes and others read. Constants do not count: a device gets them when a model is
/// loaded.
struct CostValue {
  double bytes = 0;
  int producer = -1;           ///< node; -1: the host, before the first node
  std::vector<int> consumers;  ///< nodes
  bool output = false;         ///< the host reads it after the last node
};

/// Nodes are numbered in an order in which they can run.
struct CostGraph {
  std::vector<CostUnit> units;
  std::vector<TransferCost> transfers;  ///< [from * units + to]; empty: all for free
  std::vector<double> seconds;          ///< [node * units + unit]
  std::vector<int> pins;                ///< unit of each node, -1: any; empty: no pins
  std::vector<CostValue> values;
  std::vector<std::pair<int, int>> orders;  ///< (before, after) where no value says so, e.g. updates of a state

  size_t nodes() const { return units.empty() ? 0 : seconds.size() / units.size(); }
  double at(int node, int unit) const {
    return seconds[static_cast<size_t>(node) * units.size() + static_cast<size_t>(unit)];
  }
  /// Sets the transfers between two units, both ways.
  void connect(int a, int b, TransferCost cost);
};

struct AssignedRegion {
  int unit = 0;
  std::vector<int> nodes;  ///< in an order in which they can run
  /// How many seconds longer the prediction would take with these nodes on the host; kRefused: it cannot run them.
  double saves = 0;
};

struct AssignedTransfer {
  int value = 0, from = 0, to = 0;  ///< units
  double seconds = 0;
};

struct AssignedCost {
  double compute = 0, transfers = 0, launches = 0;
  double total() const { return compute + transfers + launches; }
};

struct Assignment {
  std::vector<int> unit;                ///< of each node
  std::vector<int> region;              ///< of each node; -1: none
  std::vector<AssignedRegion> regions;  ///< in the order in which they are submitted
  /// All nodes in the order in which they run; those of a region are adjacent. Nodes that do not need a running region
  /// come before those that do.
  std::vector<int> order;
  std::vector<AssignedTransfer> transfers;  ///< by value, then unit
  AssignedCost cost;
  double on_host = 0;       ///< what all would cost on the host; kRefused: it cannot run all
  double elapsed = 0;       ///< from start to end, where the host works while regions run
  bool is_optimal = false;  ///< no assignment costs less; otherwise none was found
};

struct AssignOptions {
  int exact_steps = 100'000;  ///< of the exact search; 0: none
};

/// The cheapest assignment. Deterministic; of equal ones that with more on lower units. Exact for about 12 nodes and
/// more where costs differ much, otherwise by cuts and local search. Errors: unsupported names the node that no allowed
/// unit runs (or not the one it is pinned to); internal: the graph contradicts itself.
Result<Assignment> assign(const CostGraph& graph, const AssignOptions& options = {});

/// How the cost changes when one node alone is moved to `unit`; compute is kRefused when that refuses it.
AssignedCost change_if(const CostGraph& graph, const Assignment& assignment, int node, int unit);

}  // namespace moka::plan
