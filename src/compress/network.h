// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/program.h"
#include "format/source.h"

namespace moka::compress {

/// A weight of a neural network.
struct NetworkWeight {
  format::Message params;   ///< the WeightParams, in the model
  std::string name, layer;  ///< "conv1.weights", and the layer's type
  Shape shape;
  int64_t channel_axis = 0;  ///< on which linear quantization has scales
  bool half = false;
};

/// A weight in the making: QuantizationParams with its numbers, or halves.
struct NetworkEncoding {
  unsigned bits = 0;  ///< 16: halves
  Bytes data;         ///< packed from the highest bit down
  std::vector<float> scale, bias, table;
  size_t bytes = 0;
  std::vector<float> decoded;
};

/// The weights of rank 2 or more in all neural networks of a model, pipelines, loops and branches included, that hold
/// floats and cannot be updated, or those that are quantized. Error malformed: a layer contradicts its weights.
Result<std::vector<NetworkWeight>> network_weights_of(const format::Message& specification, bool quantized = false);
Result<std::vector<float>> values_of(const NetworkWeight& weight);

Site site_of(const NetworkWeight& weight);

/// The result of encoding a weight.
struct NetworkMade {
  Outcome outcome;
  std::optional<NetworkEncoding> encoding;
};
/// Encodes by a recipe that does not keep the weight, and compares the result with its source.
Result<NetworkMade> encode_network_weight(const NetworkWeight& weight, const Recipe& recipe);

/// Why the weight cannot have the form; empty: it can.
std::string refusal(const NetworkWeight& weight, std::span<const float> values, const Recipe& recipe);
/// As coremltools' quantization_utils in ranges, rounding and layout. Precondition: refusal is empty.
NetworkEncoding encode(const NetworkWeight& weight, std::span<const float> values, const Recipe& recipe);

/// Replaces the weight's numbers.
Status write(const NetworkWeight& weight, const NetworkEncoding& encoding);
/// Raises the version of the networks that have quantized weights or halves, and of the model around them.
Status raise_versions(const format::Message& specification);

}  // namespace moka::compress
