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

/// The sizes of every blob of a neural network for inputs of the default sizes: five in the legacy mapping, [sequence,
/// batch, channel, height, width], else those of the array. Errors: those of importing; unsupported (a size that values
/// decide).
Result<std::map<std::string, std::vector<int64_t>>> blob_sizes(const proto::Model& model,
                                                               const format::ModelFile& file);

/// The blob that holds a classifier's probabilities: the one it names, else what the last layer gives.
std::string probabilities_blob(const proto::NeuralNetworkClassifier& classifier);

}  // namespace moka::import::nn
