// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "compress/encoding.h"

namespace moka::compress {

/// A weight of rank 2 or more that can be compressed. In an ML program, this is a constant of floats in a weight file
/// that an operation other than constexpr_* reads. In a neural network, it is a weight of floats.
struct Site {
  std::string name;       ///< of the constant; of the layer and its field, "conv1.weights"
  std::string operation;  ///< the type of the first operation that reads it, or of the layer
  Shape shape;
  bool half = false;
  bool shared = false;  ///< another constant has the same elements and use
  int64_t elements = 0;
};

/// How to compress a weight. Pruning with another form gives the joint form of iOS 18. Neural networks have linear
/// forms and palettes of 1 to 8 bits, and halves.
struct Recipe {
  std::optional<Prune> prune;
  std::variant<std::monostate, Linear, Palette, Half> form;
  bool keeps() const { return !prune && std::holds_alternative<std::monostate>(form); }
};

/// The result for a weight.
struct Outcome {
  Site site;
  Recipe recipe;
  std::string skipped;  ///< why the weight was not compressed; empty: it was compressed
  size_t bytes_before = 0, bytes_after = 0;
  double signal_to_noise = 0;  ///< of the weight itself, in dB; infinite: exact
  double largest_error = 0;
};

/// The bytes that the weight has before it is compressed.
inline size_t bytes_of(const Site& site) { return static_cast<size_t>(site.elements) * (site.half ? 2 : 4); }

using Chooser = std::function<Recipe(const Site&)>;
/// Called on one thread when a weight is done.
using Progress = std::function<void(size_t done, size_t total)>;

}  // namespace moka::compress
