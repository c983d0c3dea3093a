#pragma once

#include "compiler/onnx/graph.h"

namespace moka::compiler::onnx {

/// The inputs of the function, under the names of its features. A state NAME is the input NAME and the output NAME_out.
/// An optional array has its default as an initializer of the same name. Error unsupported: a type that no graph takes.
Status add_inputs(Graph& graph, const ir::Function& function, const import::FunctionDescription& described);
/// The outputs, with their described shapes, then the states.
Status add_outputs(Graph& graph, const ir::Function& function, const import::FunctionDescription& described);

/// Author, license, version, the author's own entries, and facts that a graph cannot hold: the colors of images, class
/// labels, optional features.
ox::Properties metadata(const import::FunctionDescription& described, const import::ModelDescription& model);

}  // namespace moka::compiler::onnx
