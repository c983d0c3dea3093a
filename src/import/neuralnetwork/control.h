#pragma once

#include <set>

#include "import/neuralnetwork/network.h"

/// Shared by branches and loops.
namespace moka::import::nn {

using Names = std::set<std::string, std::less<>>;

/// Names that a network's layers write, those of branches and loops inside it included.
Names outputs_of(const proto::NeuralNetwork& n);
/// Names that a network's layers read.
Names inputs_of(const proto::NeuralNetwork& n);

/// Marks the layers that compute the blobs `wanted` are computed from; the others are there for training, or for
/// nothing.
std::vector<bool> needed(const google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>& layers, Names wanted);

/// Error unsupported where branches and loops are nested too deep.
Status check_nesting(const Layer& l);

/// Whether the absolute value of the first element is above 1e-6, as a scalar.
Result<Value*> condition(Network& net, Value* v, std::string_view name);

}  // namespace moka::import::nn
