#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "moka/model_structure.h"

namespace moka::cli {

/// Bytes of a file, or of every file below a folder. 0 when there is nothing to read.
uint64_t size_on_disk(const std::string& path);

/// The first systems that run models of a specification version, from Core ML's release notes; empty when unknown.
std::string systems_for(int specification_version);

/// FeatureDescription::formatted_type with no more than a few of its allowed shapes: "... | … 128 shapes)".
std::string folded_type(const FeatureDescription& feature);

/// An operation of a function, or a layer of a network.
struct Node {
  const ModelStructure::Operation* operation = nullptr;
  const ModelStructure::Layer* layer = nullptr;
  int depth = 0;
};
/// The operations of `function` and those in their blocks, without constants, or the layers, in order.
std::vector<Node> nodes_of(const ModelStructure& structure, const std::string& function);

/// How often each type of operation or layer occurs, most often first.
std::vector<std::pair<std::string, int64_t>> type_counts(const std::vector<Node>& nodes);

/// What a person calls a weight: everything in a weight file, and inline arrays but for the sizes, axes and pads of
/// operations (short lists of integers).
bool is_weight(const ModelStructure::Weight& weight);
/// Those of `function`, or of a network.
std::vector<const ModelStructure::Weight*> weights_of(const ModelStructure& structure, const std::string& function);

/// Weights of one element type and storage.
struct WeightGroup {
  std::string element, storage;
  int64_t weights = 0, parameters = 0;
  uint64_t bytes = 0;
};
/// Most bytes first; a pipeline has those of all its models.
std::vector<WeightGroup> weight_groups(const ModelStructure& structure, const std::string& function);

/// The most memory that this process ever had, in bytes; 0 when the system does not say.
uint64_t peak_memory();

}  // namespace moka::cli
