// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

/// The graph that plan::assign divides among units, and what it returns.
namespace moka::plan {

/// Value in CostGraph::seconds when a unit refuses a node.
constexpr double kRefused = HUGE_VAL;

struct CostUnit {
  std::string name;
  bool regions = false;  ///< true: runs regions in its own memory; false: runs single nodes in host memory
  double launch = 0;     ///< seconds per region
  bool allowed = true;
};

struct TransferCost {
  double latency = 0, bytes_per_second = HUGE_VAL;
  double seconds(double bytes) const { return latency + bytes / bytes_per_second; }
};

/// A value that a node or the host produces and others read. Constants are left out, because a device receives them
/// when the model is loaded.
struct CostValue {
  double bytes = 0;
  int producer = -1;           ///< node that produces it; -1: the host, before the first node
  std::vector<int> consumers;  ///< nodes that read it
  bool output = false;         ///< the host reads it after the last node
};

/// Nodes are numbered in an order in which they can run.
struct CostGraph {
  std::vector<CostUnit> units;
  std::vector<TransferCost> transfers;  ///< [from * units + to]; empty: all transfers are free
  std::vector<double> seconds;          ///< [node * units + unit]
  std::vector<int> pins;                ///< unit of each node, or -1 for any; empty: no pins
  std::vector<CostValue> values;
  std::vector<std::pair<int, int>> orders;  ///< (before, after) pairs that no value implies, e.g. updates of a state

  size_t nodes() const { return units.empty() ? 0 : seconds.size() / units.size(); }
  double at(int node, int unit) const {
    return seconds[static_cast<size_t>(node) * units.size() + static_cast<size_t>(unit)];
  }
  /// Sets the cost of transfers between two units, in both directions.
  void connect(int a, int b, TransferCost cost);
};

struct AssignedRegion {
  int unit = 0;
  std::vector<int> nodes;  ///< in an order in which they can run
  /// Seconds that the prediction would lose with these nodes on the host; kRefused: the host cannot run them.
  double saves = 0;
};

struct AssignedTransfer {
  int value = 0, from = 0, to = 0;  ///< `from` and `to` are units
  double seconds = 0;
};

struct AssignedCost {
  double compute = 0, transfers = 0, launches = 0;
  double total() const { return compute + transfers + launches; }
};

struct GraphAssignment {
  std::vector<int> unit;                ///< unit of each node
  std::vector<int> region;              ///< region of each node; -1: none
  std::vector<AssignedRegion> regions;  ///< in the order of submission
  /// All nodes in order of execution. Nodes of a region are adjacent, and nodes that do not need a running region come
  /// before nodes that do.
  std::vector<int> order;
  std::vector<AssignedTransfer> transfers;  ///< by value, then by unit
  AssignedCost cost;
  double on_host = 0;       ///< cost of running everything on the host; kRefused: the host cannot
  double elapsed = 0;       ///< from start to end; the host works while regions run
  bool is_optimal = false;  ///< true: no assignment costs less; false: none was found that does
};

struct AssignOptions {
  int exact_steps = 100'000;  ///< limit of the exact search; 0: skip it
};

}  // namespace moka::plan
