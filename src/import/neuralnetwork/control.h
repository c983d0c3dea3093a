#pragma once

#include <set>

#include "import/neuralnetwork/network.h"

/// What branches and loops share.
namespace moka::import::nn {

using Names = std::set<std::string, std::less<>>;

/// Names that a network's layers write, those of branches and loops inside it included.
void collect_outputs(const proto::NeuralNetwork& n, Names& names, int depth = 0);
/// Names that a network's layers read.
void collect_inputs(const proto::NeuralNetwork& n, Names& names, int depth = 0);

/// Error unsupported where branches and loops are nested too deep.
Status check_nesting(const Layer& l);

/// Whether the absolute value of the first element is above 1e-6, as a scalar.
Result<Value*> condition(Network& net, Value* v, std::string_view name);

}  // namespace moka::import::nn
