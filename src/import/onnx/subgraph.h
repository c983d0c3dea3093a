// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "import/onnx/node.h"

/// Graphs inside of nodes, such as the body of a loop.
namespace moka::import::onnx {

using format::onnx::Graph;

const Graph& graph_of(const Node& n, std::string_view name);
/// A scope in `builder`'s block that sees the names of the node's graph.
Scope scope_in(const Node& n, ir::Builder& builder);
/// The outputs of a graph whose inputs are these, with its nodes appended to the node's own block.
std::vector<Item> inlined(const Node& n, const Graph& graph, const std::vector<Item>& inputs);
/// One tensor of the slices along a new axis. Precondition: there is one.
Item stacked(const Node& n, const std::vector<Item>& items, int64_t axis);

/// Appends a while_loop that carries `vars`, in its blocks as values of `types`, which have sizes that change unknown;
/// empty: the types of the values. `fill` returns the outputs of block 0, the condition, and block 1, the
/// body, given the values that the block carries.
using LoopBlock = std::function<std::vector<Value*>(const Node& at, size_t block, const std::vector<Value*>& in)>;
ir::Op* append_while_loop(const Node& n, const std::vector<Value*>& vars, const LoopBlock& fill,
                          const std::vector<ir::Type>& types = {});

}  // namespace moka::import::onnx
