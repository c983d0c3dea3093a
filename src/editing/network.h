// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "editing/features.h"

/// Neural networks and classic models as messages.
namespace moka::editing {

/// Whether the content of a model, such as a NeuralNetwork or a FeatureVectorizer, can name features.
bool names_features(const Message& content);
/// Renames features wherever the content names them. If another value already has one of the new names, that value is
/// renamed as well.
Status rename_content(Message content, const Names& names);

/// Adds a layer `scale` behind an input or in front of an output: x * scale + bias, with one number or one per channel.
Status add_scale_layer(Message network, const std::string& name, bool is_input, const std::vector<double>& scale,
                       const std::vector<double>& bias);

/// Converts a network to another kind, such as "neuralNetworkClassifier". Keeps the fields that both kinds have.
Status convert_network(Message model, const std::string& from, const std::string& to);

/// The names of the values that a network's layers read and write.
Result<std::set<std::string>> blobs_of(const Message& network);
/// The names of the values that a layer and the layers in its loops and branches read.
Result<std::set<std::string>> reads_of(const Message& layer);

}  // namespace moka::editing
