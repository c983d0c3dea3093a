// SPDX-License-Identifier: Apache-2.0
#include "plan/assign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>

using namespace moka;
using namespace moka::plan;

namespace {

constexpr double kFar = 1e-9;

CostGraph machine(bool two_devices) {
  CostGraph g;
  g.units = {{"cpu"}, {"gpu", true, 3}};
  if (two_devices) g.units.push_back({"test", true, 2});
  g.connect(0, 1, {1, 2});
  if (two_devices) {
    g.connect(0, 2, {0.5, 1});
    g.connect(1, 2, {1.5, 0.8});
  }
  return g;
}

CostGraph random_graph(std::mt19937& random, int nodes, bool two_devices, int reach) {
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  CostGraph g = machine(two_devices);
  for (int i = 0; i < nodes; i++) {
    g.seconds.push_back(below(12) == 0 ? kRefused : 1 + below(160) * 0.1);
    for (size_t u = 1; u < g.units.size(); u++) g.seconds.push_back(below(5) == 0 ? kRefused : below(80) * 0.1);
    bool any = false;
    for (size_t u = 0; u < g.units.size(); u++) any |= g.at(i, static_cast<int>(u)) < kRefused;
    if (!any) g.seconds[static_cast<size_t>(i) * g.units.size()] = 5;
    g.values.push_back({.bytes = below(50) * 0.1, .producer = i, .output = below(6) == 0});
  }
  g.values.push_back({.bytes = 2});
  for (int i = 0; i < nodes; i++) {
    std::set<int> reads;
    for (int k = 1 + below(2); k > 0; k--) reads.insert(std::max(-1, i - 1 - below(reach)));
    for (int from : reads) g.values[static_cast<size_t>(from < 0 ? nodes : from)].consumers.push_back(i);
  }
  if (nodes > 2 && below(3) == 0) g.orders.emplace_back(below(nodes - 1), nodes - 1);
  g.values[static_cast<size_t>(nodes) - 1].output = true;
  return g;
}

std::vector<uint32_t> needs_of(const CostGraph& g) {
  std::vector<uint32_t> needs(g.nodes(), 0);
  for (const CostValue& v : g.values)
    for (int user : v.consumers)
      if (v.producer >= 0) needs[static_cast<size_t>(user)] |= 1u << v.producer;
  for (auto [from, to] : g.orders) needs[static_cast<size_t>(to)] |= 1u << from;
  return needs;
}

double compute_and_transfers(const CostGraph& g, const std::vector<int>& unit) {
  double sum = 0;
  for (size_t i = 0; i < unit.size(); i++) sum += g.at(static_cast<int>(i), unit[i]);
  for (const CostValue& v : g.values) {
    const int from = v.producer < 0 ? 0 : unit[static_cast<size_t>(v.producer)];
    std::set<int> to;
    for (int user : v.consumers) to.insert(unit[static_cast<size_t>(user)]);
    if (v.output) to.insert(0);
    to.erase(from);
    for (int u : to)
      sum += g.transfers[static_cast<size_t>(from) * g.units.size() + static_cast<size_t>(u)].seconds(v.bytes);
  }
  return sum;
}

/// The fewest launches over all orders of nodes, where a run of one unit's nodes is a region.
double launches(const CostGraph& g, const std::vector<uint32_t>& needs, const std::vector<int>& unit) {
  const size_t n = unit.size(), units = g.units.size();
  std::vector<double> least((size_t{1} << n) * units, HUGE_VAL);
  least[0] = 0;
  for (size_t done = 0; done + 1 < size_t{1} << n; done++)
    for (size_t open = 0; open < units; open++) {
      const double now = least[done * units + open];
      if (now == HUGE_VAL) continue;
      for (size_t i = 0; i < n; i++) {
        if ((done >> i & 1) != 0 || (needs[i] & ~done) != 0) continue;
        const auto u = static_cast<size_t>(unit[i]);
        double& next = least[(done | size_t{1} << i) * units + u];
        next = std::min(next, now + (u == open ? 0 : g.units[u].launch));
      }
    }
  double best = HUGE_VAL;
  for (size_t u = 0; u < units; u++) best = std::min(best, least[((size_t{1} << n) - 1) * units + u]);
  return best;
}

double brute_force(const CostGraph& g) {
  const auto needs = needs_of(g);
  std::vector<int> unit(g.nodes(), 0);
  double best = HUGE_VAL;
  for (;;) {
    const double sum = compute_and_transfers(g, unit);
    if (sum < best) best = std::min(best, sum + launches(g, needs, unit));
    size_t i = 0;
    while (i < unit.size() && ++unit[i] == static_cast<int>(g.units.size())) unit[i++] = 0;
    if (i == unit.size()) return best;
  }
}

void expect_valid(const CostGraph& g, const GraphAssignment& a) {
  std::vector<int> at(g.nodes(), -1);
  ASSERT_EQ(a.order.size(), g.nodes());
  for (size_t k = 0; k < a.order.size(); k++) at[static_cast<size_t>(a.order[k])] = static_cast<int>(k);
  for (const CostValue& v : g.values)
    for (int user : v.consumers)
      if (v.producer >= 0) {
        ASSERT_LT(at[static_cast<size_t>(v.producer)], at[static_cast<size_t>(user)]);
      }
  for (auto [from, to] : g.orders) ASSERT_LT(at[static_cast<size_t>(from)], at[static_cast<size_t>(to)]);
  size_t in_regions = 0;
  double launched = 0;
  for (size_t r = 0; r < a.regions.size(); r++) {
    const auto& nodes = a.regions[r].nodes;
    ASSERT_FALSE(nodes.empty());
    launched += g.units[static_cast<size_t>(a.regions[r].unit)].launch;
    for (size_t k = 0; k < nodes.size(); k++) {
      ASSERT_EQ(a.region[static_cast<size_t>(nodes[k])], static_cast<int>(r));
      ASSERT_EQ(a.unit[static_cast<size_t>(nodes[k])], a.regions[r].unit);
      ASSERT_EQ(at[static_cast<size_t>(nodes[k])], at[static_cast<size_t>(nodes[0])] + static_cast<int>(k));
    }
    in_regions += nodes.size();
  }
  ASSERT_EQ(in_regions,
            static_cast<size_t>(std::count_if(a.region.begin(), a.region.end(), [](int r) { return r >= 0; })));
  for (size_t i = 0; i < g.nodes(); i++) {
    ASSERT_LT(g.at(static_cast<int>(i), a.unit[i]), kRefused);
    ASSERT_EQ(a.region[i] >= 0, g.units[static_cast<size_t>(a.unit[i])].regions);
  }
  EXPECT_NEAR(a.cost.compute + a.cost.transfers, compute_and_transfers(g, a.unit), kFar * a.cost.total());
  EXPECT_NEAR(a.cost.launches, launched, kFar);
  double moved = 0;
  for (const AssignedTransfer& t : a.transfers) moved += t.seconds;
  EXPECT_NEAR(moved, a.cost.transfers, kFar * a.cost.total());
  EXPECT_LE(a.elapsed, a.cost.total() * (1 + kFar));
}

}  // namespace

TEST(Assign, IsTheOptimumOnRandomGraphsOfThreeUnits) {
  std::mt19937 random(1);
  for (int k = 0; k < 200; k++) {
    SCOPED_TRACE(k);
    const CostGraph g = random_graph(random, 3 + k % 5, true, 4);
    auto a = assign(g);
    ASSERT_TRUE(a.ok()) << a.error().to_string();
    expect_valid(g, *a);
    EXPECT_TRUE(a->is_optimal);
    EXPECT_NEAR(a->cost.total(), brute_force(g), kFar);
    EXPECT_NEAR(a->cost.launches, launches(g, needs_of(g), a->unit), kFar);
  }
}

TEST(Assign, CutsAreCloseToTheOptimumWithoutSearch) {
  std::mt19937 random(2);
  int exact = 0;
  double sum = 0, best = 0;
  for (int k = 0; k < 200; k++) {
    const CostGraph g = random_graph(random, 12, k % 2 == 0, 4);
    auto a = assign(g, {.exact_steps = 0}), b = assign(g, {.exact_steps = 10'000'000});
    ASSERT_TRUE(a.ok() && b.ok());
    expect_valid(g, *a);
    ASSERT_TRUE(b->is_optimal);
    EXPECT_FALSE(a->is_optimal);
    EXPECT_GE(a->cost.total(), b->cost.total() - kFar);
    exact += a->cost.total() < b->cost.total() + kFar;
    sum += a->cost.total();
    best += b->cost.total();
  }
  RecordProperty("optimal_of_200", exact);
  RecordProperty("excess_percent", cat((sum / best - 1) * 100));
  EXPECT_LT(sum, best * 1.02);
  EXPECT_GT(exact, 120);
}

TEST(Assign, IsTheSameEachTimeForFiveThousandNodes) {
  std::mt19937 random(3);
  for (bool two_devices : {false, true}) {
    const CostGraph g = random_graph(random, 5000, two_devices, 6);
    const auto start = std::chrono::steady_clock::now();
    auto a = assign(g);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_TRUE(a.ok());
    expect_valid(g, *a);
    RecordProperty(two_devices ? "seconds_of_three_units" : "seconds_of_two_units", cat(seconds));
    auto again = assign(g);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(a->unit, again->unit);
    EXPECT_EQ(a->order, again->order);
    EXPECT_LT(a->cost.total(), a->on_host);
  }
}

TEST(Assign, StaysOnTheHostWhereTransfersCostMore) {
  CostGraph g = machine(false);
  g.seconds = {2, 1, 2, 1};
  g.values = {{.bytes = 8, .consumers = {0}},
              {.bytes = 8, .producer = 0, .consumers = {1}},
              {.bytes = 8, .producer = 1, .output = true}};
  auto a = assign(g);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->unit, (std::vector<int>{0, 0}));
  EXPECT_TRUE(a->regions.empty());
  EXPECT_EQ(a->cost.total(), 4);
  // One node alone: 2 s for compute instead of 1, two transfers of 1 + 8 / 2 s, one launch of 3 s.
  const AssignedCost c = change_if(g, *a, 0, 1);
  EXPECT_EQ(c.compute, -1);
  EXPECT_EQ(c.transfers, 10);
  EXPECT_EQ(c.launches, 3);
}

TEST(Assign, JoinsRegionsAcrossANodeThatIsSlowerThere) {
  CostGraph g = machine(false);
  g.seconds = {100, 1, 1, 2, 100, 1};
  g.values = {{.bytes = 2, .producer = 0, .consumers = {1}},
              {.bytes = 2, .producer = 1, .consumers = {2}},
              {.bytes = 2, .producer = 2, .output = true}};
  auto a = assign(g, {.exact_steps = 0});
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->unit, (std::vector<int>{1, 1, 1}));
  ASSERT_EQ(a->regions.size(), 1u);
  // 201 s on the host, 4 s of compute, a transfer of 2 s and a launch of 3 s here.
  EXPECT_EQ(a->regions[0].saves, 192);
  EXPECT_EQ(a->on_host, 201);
}

TEST(Assign, EndsARegionWhereAPathLeavesIt) {
  CostGraph g = machine(false);
  g.seconds = {100, 1, 1, kRefused, 100, 1};
  g.values = {{.bytes = 2, .producer = 0, .consumers = {1, 2}}, {.bytes = 2, .producer = 1, .consumers = {2}}};
  auto a = assign(g);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->unit, (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(a->regions.size(), 2u);
}

TEST(Assign, SchedulesHostWorkWhileARegionRuns) {
  CostGraph g = machine(false);
  // Node 0 is on the device and node 1 reads it. Nodes 2 and 3 on the host do not need it.
  g.seconds = {kRefused, 50, 1, kRefused, 20, kRefused, 5, kRefused};
  g.values = {{.bytes = 2, .producer = 0, .consumers = {1}}};
  auto a = assign(g);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->order, (std::vector<int>{0, 2, 3, 1}));
  EXPECT_LT(a->elapsed, a->cost.total());
}

TEST(Assign, KeepsPinsAndRefusesWhatContradicts) {
  CostGraph g = machine(false);
  g.seconds = {1, 100, 1, kRefused};
  g.pins = {1, -1};
  auto a = assign(g);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->unit, (std::vector<int>{1, 0}));
  g.pins = {-1, 1};
  auto refused = assign(g);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  EXPECT_NE(refused.error().to_string().find("node 1 is pinned to gpu, which refuses it"), std::string::npos);
  g.pins.clear();
  g.units[0].allowed = false;
  EXPECT_EQ(assign(g).error().code(), ErrorCode::unsupported);
  g.units[0].allowed = true;
  g.values = {{.bytes = 1, .producer = 1, .consumers = {0}}};
  EXPECT_EQ(assign(g).error().code(), ErrorCode::internal);
}
