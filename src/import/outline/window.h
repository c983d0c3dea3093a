// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/proto/neural_network.pb.h"
#include "import/outline/parts.h"

/// The windows and channels of layers and operations, and the shapes of their weights.
namespace moka::import {

/// What the layer's message says, with the specification's defaults.
Outline::Window window_of(const proto::NeuralNetworkLayer& layer);

/// The shape of a layer's weight in the order of the file. Empty: the layer does not say it, so its numbers are a
/// vector.
std::vector<int64_t> weight_shape(const proto::NeuralNetworkLayer& layer, std::string_view field);

/// Adds the windows of convolutions, pools and linear operations of all functions, as their constants say.
void add_windows(Outline& outline);

/// Adds what products, sums, differences, quotients by constants and normalizations do to an image before anything
/// else: together a scale and a bias.
void add_image_operations(const proto::Model& model, Outline& outline);

/// The numbers in a constant's text: "[1, 1]", "0.5". Empty for other texts and for long lists.
std::vector<double> numbers_in(std::string_view text);

/// The dimensions of a tensor's type as MIL text; -1 where unknown. Empty for other types.
std::vector<int64_t> dimensions_in(std::string_view type);

}  // namespace moka::import
