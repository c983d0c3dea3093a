// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/onnx/graph.h"

namespace moka::compiler::onnx {

/// Adds the inputs of the function with the names of its features. A state NAME becomes the input NAME and the output
/// NAME_out. An optional array has its default as an initializer of the same name. Error unsupported: a type that
/// graphs cannot have as input.
Status add_inputs(Graph& graph, const ir::Function& function, const import::FunctionDescription& described);
/// Adds the outputs with their described shapes, then the states.
Status add_outputs(Graph& graph, const ir::Function& function, const import::FunctionDescription& described);

/// Metadata of the ONNX model: author, license, version and user-defined entries, and facts that a graph cannot
/// express: the colors of images, class labels, optional features.
ox::Properties metadata(const import::FunctionDescription& described, const import::ModelDescription& model);

}  // namespace moka::compiler::onnx
