// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "concluding/rule.h"

/// Conversions and copies of inputs and outputs that every prediction repeats.
namespace moka::concluding {

struct RepeatedData {
  std::string reason;
  std::vector<std::string> names;  ///< of the features
  bool is_input = false;
  Events events;
  int64_t a_call = 0;  ///< how many a prediction has, rounded
};
/// Those of a model that most of its predictions have, and that take at least `least_share` of the time of predictions.
std::vector<RepeatedData> repeated_data(const Model& model, double least_share,
                                        const std::function<bool(const Event&)>& is_meant);

}  // namespace moka::concluding
