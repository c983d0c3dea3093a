// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "import/neuralnetwork/network.h"

/// Shared by branches and loops.
namespace moka::import::nn {

using Names = std::set<std::string, std::less<>>;

/// Names that a network's layers write, including the layers in branches and loops.
Names outputs_of(const proto::NeuralNetwork& n);
/// Names that a network's layers read.
Names inputs_of(const proto::NeuralNetwork& n);

/// The same for a layer, with the layers inside it.
Names outputs_of(const proto::NeuralNetworkLayer& layer);
Names inputs_of(const proto::NeuralNetworkLayer& layer);
/// Whether the layer or one inside it is a custom layer.
bool has_custom(const proto::NeuralNetworkLayer& layer);

/// Marks the layers that the `wanted` blobs depend on. The other layers serve only for training, or are unused.
std::vector<bool> needed(const google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>& layers, Names wanted);

/// The networks of a branch or loop, in the order of the file: if and else, or condition and body.
std::vector<const proto::NeuralNetwork*> networks_inside(const proto::NeuralNetworkLayer& layer);
/// The depth of branches and loops at which listings of layers end.
constexpr int kMaxListedDepth = 16;

/// Error unsupported when branches and loops are nested too deep.
Status check_nesting(const Layer& l);

/// Whether the absolute value of the first element exceeds 1e-6, as a scalar.
Result<Value*> condition(Network& net, Value* v, std::string_view name);

}  // namespace moka::import::nn
