// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "moka/model_structure.h"

namespace moka::cli {

/// Bytes of a file, or of all files below a folder; 0 when there is nothing to read.
uint64_t size_on_disk(const std::string& path);

/// The first systems that support a specification version, from Core ML's release notes; empty when unknown.
std::string systems_for(int specification_version);

/// FeatureDescription::formatted_type with no more than a few of its allowed shapes: "... | … 128 shapes)".
std::string folded_type(const FeatureDescription& feature);

/// An operation of a function, or a layer of a network.
struct Node {
  const ModelStructure::Operation* operation = nullptr;
  const ModelStructure::Layer* layer = nullptr;
  int depth = 0;
};
/// The operations of `function` and of their blocks, without constants, or the layers, in order.
std::vector<Node> nodes_of(const ModelStructure& structure, const std::string& function);

/// The number of operations or layers of each type, in descending order.
std::vector<std::pair<std::string, int64_t>> type_counts(const std::vector<Node>& nodes);

/// Weights in the user's sense: everything in a weight file, and inline arrays except the sizes, axes and pads of
/// operations (short lists of integers).
bool is_weight(const ModelStructure::Weight& weight);
/// The weights of `function` or of a network.
std::vector<const ModelStructure::Weight*> weights_of(const ModelStructure& structure, const std::string& function);

/// Weights of the same element type and storage.
struct WeightGroup {
  std::string element, storage;
  int64_t weights = 0, parameters = 0;
  uint64_t bytes = 0;
};
/// Sorted by size in descending order. A pipeline includes the weights of all its models.
std::vector<WeightGroup> weight_groups(const ModelStructure& structure, const std::string& function);

/// The peak memory of this process in bytes; 0 when the system does not report it.
uint64_t peak_memory();

}  // namespace moka::cli
