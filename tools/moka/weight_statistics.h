// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json.h"
#include "moka/inspection.h"

namespace moka::cli {

/// The statistics of a model's weights, each read when it is asked for.
class StatisticsReader {
 public:
  explicit StatisticsReader(const Inspection& inspection);

  /// `weight`: of the inspection's outline. nullopt: its elements cannot be read.
  std::optional<WeightStatistics> read(const ModelStructure::Weight& weight) const;

 private:
  void add(const ModelStructure& structure, const std::vector<size_t>& models);

  const Inspection& inspection_;
  std::map<const ModelStructure::Weight*, std::pair<std::vector<size_t>, size_t>> places_;
};

Json to_json(const WeightStatistics& statistics);

}  // namespace moka::cli
