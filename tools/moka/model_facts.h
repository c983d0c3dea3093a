#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "moka/compute_plan.h"

namespace moka::cli {

/// Bytes of a file, or of every file below a folder. 0 when there is nothing to read.
uint64_t size_on_disk(const std::string& path);

/// The first systems that run models of a specification version, from Core ML's release notes; empty when unknown.
std::string systems_for(int specification_version);

/// How often each type of operation occurs, most often first, constants not counted.
std::vector<std::pair<std::string, int64_t>> operation_counts(const OperationList& structure);

/// What a person calls a weight: everything in a weight file, and inline arrays but for the sizes, axes and pads of
/// operations (short lists of integers, single numbers).
bool is_weight(const OperationList::Weight& weight);

/// Weights of one element type and storage.
struct WeightGroup {
  std::string element, storage;
  int64_t weights = 0, parameters = 0;
  uint64_t bytes = 0;
};
/// Most bytes first.
std::vector<WeightGroup> weight_groups(const OperationList& structure);

/// The most memory that this process ever had, in bytes; 0 when the system does not say.
uint64_t peak_memory();

}  // namespace moka::cli
