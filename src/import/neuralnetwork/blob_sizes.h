#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace moka::format {
class ModelFile;
}
namespace moka::proto {
class Model;
class NeuralNetworkClassifier;
}  // namespace moka::proto

namespace moka::import::nn {

/// The sizes of every blob of a neural network for inputs of the default sizes: [sequence, batch, channel, height,
/// width] in the legacy mapping, otherwise the sizes of the array. Errors: those of importing; unsupported (a size
/// depends on values).
Result<std::map<std::string, std::vector<int64_t>>> blob_sizes(const proto::Model& model,
                                                               const format::ModelFile& file);

/// The blob with a classifier's probabilities: the one that the classifier names, or the output of the last layer.
std::string probabilities_blob(const proto::NeuralNetworkClassifier& classifier);

}  // namespace moka::import::nn
