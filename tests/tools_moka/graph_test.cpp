// SPDX-License-Identifier: Apache-2.0
#include "view/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <tuple>

#include "view/base64.h"

namespace moka::cli {
namespace {

using Operation = ModelStructure::Operation;

constexpr const char* kType = "tensor<fp32, [1, 8]>";

Operation operation(std::string type, std::string result, const std::vector<std::string>& inputs) {
  Operation op{.name = result, .type = std::move(type)};
  for (size_t i = 0; i < inputs.size(); ++i) op.inputs.push_back({"x" + std::to_string(i), {inputs[i]}});
  op.outputs = {{std::move(result), kType}};
  return op;
}

ModelStructure program(std::vector<Operation> operations, const std::string& output) {
  ModelStructure structure;
  structure.type = "mlProgram";
  structure.functions.push_back({"main", "ios17", {{{"x", kType}}, std::move(operations), {output}}});
  return structure;
}

/// `blocks` times linear, relu, linear, add with a connection around them.
ModelStructure residual(int blocks) {
  std::vector<Operation> all;
  std::string value = "x";
  for (int b = 0; b < blocks; ++b) {
    const std::string prefix = "layer_" + std::to_string(b) + "_";
    all.push_back(operation("linear", prefix + "up", {value}));
    all.push_back(operation("relu", prefix + "relu", {prefix + "up"}));
    all.push_back(operation("linear", prefix + "down", {prefix + "relu"}));
    all.push_back(operation("add", prefix + "sum", {prefix + "down", value}));
    value = prefix + "sum";
  }
  return program(std::move(all), value);
}

const GraphNode& at(const Graph& graph, int32_t id) { return graph.nodes.at(static_cast<size_t>(id)); }

int32_t find(const Graph& graph, const std::string& name) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].name == name) return static_cast<int32_t>(i);
  ADD_FAILURE() << "no node " << name;
  return 0;
}

/// Checks a graph: edges join members of one group, downwards, and no two members share a place.
void check(const Graph& graph) {
  for (const GraphEdge& e : graph.edges) {
    EXPECT_EQ(at(graph, e.from).parent, at(graph, e.to).parent);
    EXPECT_LT(at(graph, e.from).rank, at(graph, e.to).rank) << at(graph, e.from).name << " " << at(graph, e.to).name;
    EXPECT_EQ(e.is_long, at(graph, e.to).rank > at(graph, e.from).rank + 1);
  }
  std::set<std::tuple<int32_t, int32_t, int32_t>> places;
  for (size_t i = 1; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    EXPECT_TRUE(places.emplace(node.parent, node.rank, node.lane).second) << node.name;
    const auto& members = at(graph, node.parent).members;
    EXPECT_EQ(std::count(members.begin(), members.end(), static_cast<int32_t>(i)), 1);
  }
  // The bends of a long edge do not lie on nodes of its group.
  for (const GraphEdge& e : graph.edges)
    for (int32_t row = at(graph, e.from).rank + 1; e.is_long && row < at(graph, e.to).rank; ++row)
      EXPECT_FALSE(places.contains({at(graph, e.from).parent, row, e.lane})) << e.value;
}

TEST(Graph, BranchesStandBesideEachOther) {
  const Graph graph = graph_of(program({operation("relu", "a", {"x"}), operation("conv", "b", {"a"}),
                                        operation("tanh", "c", {"a"}), operation("concat", "d", {"b", "c"})},
                                       "d"),
                               "main");
  check(graph);
  const GraphNode &b = at(graph, find(graph, "b")), &c = at(graph, find(graph, "c"));
  EXPECT_EQ(b.rank, c.rank);
  EXPECT_NE(b.lane, c.lane);
  EXPECT_EQ(graph.nodes[0].operations, 4);
}

TEST(Graph, SkippingEdgeHasItsOwnLane) {
  const Graph graph = graph_of(residual(1), "main");
  check(graph);
  const GraphNode& up = at(graph, find(graph, "layer_0_up"));
  EXPECT_EQ(up.lane, at(graph, find(graph, "layer_0_sum")).lane);
  const auto skip = std::find_if(graph.edges.begin(), graph.edges.end(), [](const GraphEdge& e) { return e.is_long; });
  ASSERT_NE(skip, graph.edges.end());
  EXPECT_EQ(skip->value, "x");
  EXPECT_NE(skip->lane, up.lane);
}

TEST(Graph, EnsemblesHaveTheirTrees) {
  ModelStructure structure;
  structure.type = "treeEnsembleRegressor";
  structure.inputs = {"x"};
  structure.outputs = {"y"};
  std::vector<TreeNode> nodes;
  for (uint64_t tree = 0; tree < 20; ++tree) {
    nodes.push_back({tree, 0, 1, 2, "feature 3 <= 0.5", {}});
    nodes.push_back({tree, 1, 0, 0, "", {{0, 2.5}}});
    nodes.push_back({tree, 2, 0, 0, "", {{0, -1}}});
  }
  nodes.push_back({20, 0, 0, 7, "feature 0 < 1", {}});  // its own child, and one that is absent
  const Graph graph = graph_of(structure, "", [&](const auto&) { return nodes; });
  const GraphNode& ensemble = at(graph, find(graph, "treeEnsembleRegressor"));
  ASSERT_EQ(ensemble.members.size(), 21U);
  EXPECT_EQ(ensemble.operations, 61);
  EXPECT_EQ(graph.nodes[0].operations, 1);
  const GraphNode& tree = at(graph, ensemble.members[0]);
  EXPECT_EQ(tree.name, "tree 0");
  ASSERT_EQ(tree.members.size(), 3U);
  EXPECT_EQ(at(graph, tree.members[0]).type, "feature 3 <= 0.5");
  EXPECT_EQ(at(graph, tree.members[1]).name, "yes: node 1");
  EXPECT_EQ(at(graph, tree.members[1]).type, "2.5");
  EXPECT_EQ(at(graph, tree.members[2]).name, "no: node 2");
  EXPECT_EQ(at(graph, tree.members[2]).rank, 1);
  // The trees stand in rows.
  std::set<std::pair<int32_t, int32_t>> places;
  for (const int32_t id : ensemble.members) places.emplace(at(graph, id).rank, at(graph, id).lane);
  EXPECT_EQ(places.size(), 21U);
  EXPECT_EQ(at(graph, ensemble.members[20]).rank, 2);
}

TEST(Graph, TwelveEqualLayersBecomeOneGroup) {
  const Graph graph = graph_of(residual(12), "main");
  check(graph);
  std::vector<int32_t> blocks;
  for (const GraphNode& node : graph.nodes)
    if (node.kind == NodeKind::repeat)
      for (const int32_t id : node.members)
        if (at(graph, id).kind == NodeKind::block) blocks.push_back(id);
  ASSERT_EQ(blocks.size(), 12U);
  for (const int32_t id : blocks) EXPECT_EQ(at(graph, id).operations, 4);
  EXPECT_EQ(at(graph, blocks[3]).name, "layer_3");
  // The input, the group and the output are left.
  EXPECT_EQ(graph.nodes[0].members.size(), 3U);
  EXPECT_EQ(graph.nodes[0].operations, 48);
}

/// A chain of operations that all differ, with these names.
ModelStructure chain(const std::vector<std::string>& names) {
  std::vector<Operation> all;
  std::string value = "x";
  for (const std::string& name : names) {
    all.push_back(operation("op" + std::to_string(all.size()), name, {value}));
    value = name;
  }
  return program(std::move(all), value);
}

/// The names of the members of a group, without ports.
std::vector<std::string> members(const Graph& graph, int32_t group) {
  std::vector<std::string> out;
  for (const int32_t id : at(graph, group).members)
    if (at(graph, id).kind != NodeKind::port) out.push_back(at(graph, id).name);
  return out;
}

using Names = std::vector<std::string>;

TEST(Graph, NamesThatShareAScopeBecomeGroups) {
  const Graph graph =
      graph_of(chain({"stem", "enc/a.0/q", "enc/a.0/k", "enc/a.1/q", "enc/norm", "dec.up", "dec.down"}), "main");
  check(graph);
  EXPECT_EQ(members(graph, 0), (Names{"x", "stem", "enc", "dec", "dec.down"}));
  const int32_t enc = find(graph, "enc");
  EXPECT_EQ(at(graph, enc).kind, NodeKind::scope);
  EXPECT_EQ(at(graph, enc).operations, 4);
  // One operation alone does not become a group.
  EXPECT_EQ(members(graph, enc), (Names{"enc/a", "enc/norm"}));
  EXPECT_EQ(members(graph, find(graph, "enc/a")), (Names{"enc/a.0", "enc/a.1/q"}));
  EXPECT_EQ(members(graph, find(graph, "enc/a.0")), (Names{"enc/a.0/q", "enc/a.0/k"}));
  EXPECT_EQ(members(graph, find(graph, "dec")), (Names{"dec.up", "dec.down"}));
}

TEST(Graph, ScopesThatReturnAreGroupsOfTheirOwn) {
  const Graph graph = graph_of(chain({"a/1", "a/2", "b/1", "a/3", "a/4"}), "main");
  check(graph);  // One group "a" would make a cycle with "b/1".
  EXPECT_EQ(members(graph, 0), (Names{"x", "a", "b/1", "a", "a/4"}));
}

TEST(Graph, WhatIsNoScopeIsNotGrouped) {
  // A scope of all, versions of one name, and names without separators.
  for (const Names& names : {Names{"net/a", "net/b", "net/c"}, Names{"h.1", "h.2", "h.3"},
                             Names{"h_1_a", "h_1_b", "h_1_c"}, Names{"/", "//", "a/", ".", "a."}}) {
    const Graph graph = graph_of(chain(names), "main");
    check(graph);
    for (const GraphNode& node : graph.nodes) EXPECT_NE(node.kind, NodeKind::scope) << names[0];
  }
}

TEST(Graph, RepeatsKeepToScopes) {
  std::vector<Operation> all;
  std::string value = "x";
  const auto add = [&](const std::string& type, const std::string& name) {
    all.push_back(operation(type, name, {value}));
    value = name;
  };
  add("gather", "net/embed/words");
  // The end of a layer precedes the first one.
  add("norm", "net/embed/norm");
  for (int i = 0; i < 6; ++i) {
    const std::string layer = "net/layer_" + std::to_string(i);
    add("linear", layer + "/attention/query");
    add("softmax", layer + "/attention/weights");
    add("relu", layer + "/relu");
    add("norm", layer + "/norm");
  }
  add("tanh", "pool");
  const Graph graph = graph_of(program(std::move(all), value), "main");
  check(graph);
  EXPECT_EQ(members(graph, 0), (Names{"x", "net", "pool", "pool"}));
  EXPECT_EQ(members(graph, find(graph, "net")), (Names{"net/embed", "6 equal blocks"}));
  EXPECT_EQ(members(graph, find(graph, "6 equal blocks"))[5], "net/layer_5");
  const int32_t layer = find(graph, "net/layer_3");
  EXPECT_EQ(members(graph, layer), (Names{"net/layer_3/attention", "net/layer_3/relu", "net/layer_3/norm"}));
  EXPECT_EQ(graph.nodes[0].operations, 27);
}

TEST(Graph, ScopesInsideTheBlocksOfAnOperation) {
  Operation loop = operation("while_loop", "out", {"x"});
  loop.blocks.push_back({{{"a", kType}}, {operation("less", "go", {"a"})}, {"go"}});
  loop.blocks.push_back({{{"b", kType}},
                         {operation("relu", "cell/gate/in", {"b"}), operation("mul", "cell/gate/out", {"cell/gate/in"}),
                          operation("tanh", "cell/state", {"cell/gate/out"})},
                         {"cell/state"}});
  const Graph graph = graph_of(program({loop}, "out"), "main");
  check(graph);
  EXPECT_EQ(members(graph, find(graph, "body")), (Names{"b", "cell/gate", "cell/state", "cell/state"}));
}

TEST(Graph, WhatDiffersIsNotGrouped) {
  std::vector<Operation> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(
        operation("op" + std::to_string(i), "v" + std::to_string(i), {i ? "v" + std::to_string(i - 1) : "x"}));
  const Graph graph = graph_of(program(std::move(all), "v19"), "main");
  check(graph);
  for (const GraphNode& node : graph.nodes) EXPECT_NE(node.kind, NodeKind::block);
}

TEST(Graph, ConstantsAreShownWhereTheyAreUsed) {
  Operation axis{.name = "axis", .type = "const", .outputs = {{"axis", "tensor<int32, []>"}}, .values = {{"val", "1"}}};
  Operation weight{.name = "w", .type = "const", .outputs = {{"w", "tensor<fp32, [8, 8]>"}}};
  ModelStructure structure = program({axis, weight, operation("linear", "y", {"x", "w", "axis"})}, "y");
  structure.weights.push_back({.name = "w", .type = "tensor<fp32, [8, 8]>", .function = "main"});
  const Graph graph = graph_of(structure, "main");
  check(graph);
  const GraphNode& y = at(graph, find(graph, "y"));
  EXPECT_EQ(y.inputs, (std::vector<std::pair<std::string, std::vector<std::string>>>{{"x0", {"x"}}}));
  EXPECT_EQ(y.values, (std::vector<std::pair<std::string, std::string>>{{"x1", "w"}, {"x2", "1"}}));
  EXPECT_EQ(y.weights, std::vector<int32_t>{0});
}

TEST(Graph, BlocksOfAnOperationAreInsideIt) {
  Operation loop = operation("while_loop", "out", {"x"});
  loop.blocks.push_back({{{"a", kType}}, {operation("less", "go", {"a", "outer"})}, {"go"}});
  loop.blocks.push_back({{{"b", kType}}, {operation("relu", "next", {"b"})}, {"next"}});
  const Graph graph = graph_of(program({operation("tanh", "outer", {"x"}), loop}, "out"), "main");
  check(graph);
  const int32_t body = find(graph, "body");
  EXPECT_EQ(at(graph, at(graph, body).parent).type, "while_loop");
  EXPECT_EQ(at(graph, find(graph, "next")).parent, body);
  // The use of an outer value inside is an edge to the loop.
  const int32_t outer = find(graph, "outer"), out = find(graph, "out");
  EXPECT_TRUE(std::any_of(graph.edges.begin(), graph.edges.end(),
                          [&](const GraphEdge& e) { return e.from == outer && e.to == out; }));
}

TEST(Graph, LayersThatUseTheirOwnResultsAreDrawn) {
  ModelStructure structure;
  structure.type = "neuralNetwork";
  structure.inputs = {"a"};
  structure.outputs = {"b", "missing"};
  structure.layers = {{"one", "add", {"a", "c"}, {"b"}}, {"two", "relu", {"b"}, {"c"}}, {"two", "relu", {"c"}, {"b"}}};
  check(graph_of(structure, ""));
}

TEST(Graph, TenThousandOperations) {
  for (const bool is_repeated : {true, false}) {
    ModelStructure structure = residual(2500);
    if (!is_repeated)
      for (size_t i = 0; i < structure.functions[0].body.operations.size(); ++i)
        structure.functions[0].body.operations[i].type += std::to_string(i);
    const auto start = std::chrono::steady_clock::now();
    const Graph graph = graph_of(structure, "main");
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::printf("10,000 operations, %s: %.1f ms\n", is_repeated ? "repeated" : "all different", 1e3 * taken.count());
    EXPECT_EQ(graph.nodes[0].operations, 10000);
    EXPECT_EQ(graph.nodes[0].members.size() < 10, is_repeated);
  }
}

TEST(Graph, TenThousandOperationsInScopes) {
  Names names;
  for (int i = 0; i < 10000; ++i)
    names.push_back("net/stage_" + std::to_string(i / 1000) + "/layer." + std::to_string(i / 10) + "/op" +
                    std::to_string(i));
  const ModelStructure structure = chain(names);
  const auto start = std::chrono::steady_clock::now();
  const Graph graph = graph_of(structure, "main");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::printf("10,000 operations in scopes: %.1f ms\n", 1e3 * taken.count());
  check(graph);
  EXPECT_EQ(graph.nodes[0].members.size(), 12U);
  EXPECT_EQ(graph.nodes[0].operations, 10000);
  EXPECT_EQ(members(graph, find(graph, "net/stage_9/layer.999")).size(), 10U);
}

TEST(Base64, KnownTexts) {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  // The vectors of RFC 4648.
  for (const auto& [plain, coded] :
       {std::pair{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(base64_of(bytes(plain)), coded);
    const auto back = bytes_of_base64(coded);
    ASSERT_TRUE(back);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(back->data()), back->size()), plain);
  }
  for (const char* bad : {"Zg", "Zg=", "Z===", "Zm9 ", "=Zm9", "Zg==Zg=="}) EXPECT_FALSE(bytes_of_base64(bad)) << bad;
}

}  // namespace
}  // namespace moka::cli
