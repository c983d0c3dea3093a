// SPDX-License-Identifier: Apache-2.0
#include "weight_statistics.h"

namespace moka::cli {

StatisticsReader::StatisticsReader(const Inspection& inspection) : inspection_(inspection) {
  add(inspection.outline().structure, {});
}

void StatisticsReader::add(const ModelStructure& structure, const std::vector<size_t>& models) {
  for (size_t i = 0; i < structure.weights.size(); ++i) places_[&structure.weights[i]] = {models, i};
  for (size_t i = 0; i < structure.models.size(); ++i) {
    std::vector<size_t> inner = models;
    inner.push_back(i);
    add(structure.models[i].structure, inner);
  }
}

std::optional<WeightStatistics> StatisticsReader::read(const ModelStructure::Weight& weight) const {
  const auto place = places_.find(&weight);
  if (place == places_.end()) return std::nullopt;
  try {
    return inspection_.statistics(place->second.second, place->second.first);
  } catch (const Exception& e) {
    if (e.kind() == ErrorKind::unsupported) return std::nullopt;
    throw;
  }
}

Json to_json(const WeightStatistics& s) {
  return {{"count", s.count},       {"zeros", s.zeros},        {"nan", s.nan},
          {"infinite", s.infinite}, {"bits", s.bits},          {"minimum", s.minimum},
          {"maximum", s.maximum},   {"mean", s.mean},          {"deviation", s.deviation},
          {"distinct", s.distinct}, {"histogram", s.histogram}};
}

}  // namespace moka::cli
