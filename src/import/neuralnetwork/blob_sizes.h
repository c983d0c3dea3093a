// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace moka::format {
class ModelFile;
}
namespace moka::proto {
class Model;
class NeuralNetworkClassifier;
class NeuralNetworkLayer;
}  // namespace moka::proto

namespace moka::import::nn {

/// The sizes of every blob of a neural network for inputs of the default sizes: [sequence, batch, channel, height,
/// width] in the legacy mapping, otherwise the sizes of the array. Errors: those of importing; unsupported (a size
/// depends on values).
Result<std::map<std::string, std::vector<int64_t>>> blob_sizes(const proto::Model& model,
                                                               const format::ModelFile& file);
/// The same for the model of the file.
Result<std::map<std::string, std::vector<int64_t>>> blob_sizes(const format::ModelFile& file);

/// The dimensions of a blob; -1: a size that is not known. nullopt: not even the rank is.
using BlobSize = std::optional<std::vector<int64_t>>;

/// The sizes of the blobs that a layer reads and writes.
struct LayerSizes {
  std::vector<BlobSize> inputs, outputs;
};
using LayerRecord = std::map<const proto::NeuralNetworkLayer*, LayerSizes>;

/// The sizes for inputs of the default sizes, in the order of Outline::layers. A layer that cannot be imported, such as
/// a custom layer without an implementation, leaves unknown what depends on it. The legacy mapping gives [channel,
/// height, width] or [channel], and five dimensions only for several steps or batches.
std::vector<LayerSizes> layer_sizes(const proto::Model& model, const format::ModelFile& file);

/// The blob with a classifier's probabilities: the one that the classifier names, or the output of the last layer.
std::string probabilities_blob(const proto::NeuralNetworkClassifier& classifier);

}  // namespace moka::import::nn
