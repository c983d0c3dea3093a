// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "moka/model_structure.h"

namespace moka {

/// Statistics of a weight's elements as the file stores them. For quantized weights these are the stored integers.
struct WeightStatistics {
  uint64_t count = 0, zeros = 0, nan = 0, infinite = 0;
  unsigned bits = 0;  ///< of one stored element
  /// The range and moments of the finite elements; zeros when there are none.
  double minimum = 0, maximum = 0, mean = 0, deviation = 0;
  /// Number of different values; 0: more than 65536, or not counted because elements have more than 16 bits.
  uint64_t distinct = 0;
  /// Finite elements in intervals of the same width from minimum to maximum.
  std::vector<uint64_t> histogram;
};

/// A node of a tree ensemble. A leaf has values and no test.
struct TreeNode {
  uint64_t tree = 0, id = 0, on_true = 0, on_false = 0;
  std::string test;                                 ///< "feature 3 <= 0.5"; empty for a leaf
  std::vector<std::pair<uint64_t, double>> values;  ///< that a leaf adds to a dimension of the result
};

/// Dimensions, -1 where a size is not known. nullopt: not even the rank is.
using ValueSize = std::optional<std::vector<int64_t>>;

/// The sizes of what a layer of a neural network reads and writes.
struct LayerSizes {
  std::vector<ValueSize> inputs, outputs;
};

/// An open model file, to inspect it. Works for every kind of model, including those that Moka refuses to run. Loads
/// nothing: weights are read only for their statistics. Thread-safe.
class MOKA_EXPORT Inspection {
 public:
  /// Throws not_found, io or malformed when there is no model at all.
  static Inspection open(const std::filesystem::path& path);

  const ModelOutline& outline() const;
  /// The statistics of `structure.weights[weight]`, where `structure` is the model's, or that of the model in a
  /// pipeline which the indices `models` lead to. Throws invalid_argument (indices), unsupported (elements that cannot
  /// be read).
  WeightStatistics statistics(size_t weight, std::span<const size_t> models = {}, size_t intervals = 64) const;

  /// The sizes for inputs of the default sizes, by layer of `structure.layers`; empty for other models. Arrays of old
  /// networks, which have five dimensions, are [channel, height, width] or [channel] unless there are several steps or
  /// batches. A layer that Moka cannot import, such as a custom layer, leaves unknown what depends on it. `models` as
  /// above.
  std::vector<LayerSizes> layer_sizes(std::span<const size_t> models = {}) const;

  /// The types of a program's values by name, as MIL text, where flexible inputs have their default sizes. Empty when
  /// no input is flexible, and when Moka cannot import the program. `models` as above.
  std::map<std::string, std::string> types_at_default_sizes(const std::string& function,
                                                            std::span<const size_t> models = {}) const;

  /// The nodes of a tree ensemble, in the order of the file; empty for other models. `models` as above.
  std::vector<TreeNode> tree_nodes(std::span<const size_t> models = {}) const;

  struct Impl;

 private:
  explicit Inspection(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace moka
