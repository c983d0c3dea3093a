// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/onnx/scope.h"

namespace moka::import::onnx {

/// The domain as `OperatorImport` has it: empty for "ai.onnx".
std::string domain_of(const std::string& domain);

/// Imports the body of a function of the model in place of a node that calls it. False: the node calls no function of
/// the model.
bool call_function(Scope& scope, const format::onnx::Node& node);

/// Imports the nodes of a graph that is an attribute of a node. Returns the scope with its values.
void run_graph(Scope& inner, const format::onnx::Graph& graph);

}  // namespace moka::import::onnx
