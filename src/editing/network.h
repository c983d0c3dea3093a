#pragma once

#include <set>

#include "editing/features.h"

/// Neural networks and classic models as messages.
namespace moka::editing {

/// Whether the content of a model, such as a NeuralNetwork or a FeatureVectorizer, can name features.
bool names_features(const Message& content);
/// Renames features wherever the content names them. Other values that have a new name get another one.
Status rename_content(Message content, const Names& names);

/// Adds a layer `scale` behind an input or in front of an output: x * scale + bias, with one number or one per channel.
Status add_scale_layer(Message network, const std::string& name, bool is_input, const std::vector<double>& scale,
                       const std::vector<double>& bias);

/// Makes another kind of network of one, which keeps the fields that both have: "neuralNetworkClassifier".
Status convert_network(Message model, const std::string& from, const std::string& to);

/// The names of what a network's layers read and write.
Result<std::set<std::string>> blobs_of(const Message& network);
/// What a layer reads, with the layers in its loops and branches.
Result<std::set<std::string>> reads_of(const Message& layer);

}  // namespace moka::editing
