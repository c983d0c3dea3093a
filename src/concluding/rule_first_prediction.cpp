// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_first_prediction() {
  return {
      "first-prediction", "The first prediction after loading takes much longer than later ones",
      "Predict once with any input after loading, before someone waits for an answer. A kernel cache and a cache of "
      "packed weights shorten it too.",
      [](const Subject& subject, Conclusions& to) {
        constexpr double kTimes = 5, kLeastSeconds = 5e-3;
        for (const Model& m : subject.models) {
          // With several loads, the model should be kept first.
          if (m.loads.size() != 1 || m.predictions.size() < 4) continue;
          const Event* first = m.predictions.front();
          std::vector<double> later;
          for (size_t i = 1; i < m.predictions.size(); i++) later.push_back(m.predictions[i]->seconds());
          std::nth_element(later.begin(), later.begin() + static_cast<std::ptrdiff_t>(later.size() / 2), later.end());
          const double median = later[later.size() / 2], more = first->seconds() - median;
          if (first->seconds() < kTimes * median || more < kLeastSeconds) continue;
          to.add(m,
                 cat("takes ", duration(first->seconds()), " for the first prediction and ", duration(median),
                     " for later ones: predict once after loading"),
                 {first}, more);
        }
      }};
}

}  // namespace moka::concluding
