// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "format/model_file.h"
#include "format/proto/neural_network.pb.h"

namespace moka::format {

/// Number of layers of a neural network by name and kind ("Convolution", "PoolingMax", "ActivationReLU"); empty for
/// other models.
std::map<std::string, int64_t> layer_histogram(const proto::Model& model);

/// How the weights of convolutions, inner products, embeddings and constants are stored.
std::set<WeightData::Kind> weight_kinds(const proto::Model& model, const ModelFile& file);

/// Layers of a neural network, whichever of the three types it has; null for other models.
const google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>* layers_of(const proto::Model& model);

}  // namespace moka::format
