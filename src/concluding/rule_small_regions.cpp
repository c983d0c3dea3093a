// SPDX-License-Identifier: Apache-2.0
#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_small_regions() {
  return {
      "small-regions", "A GPU gets its work in many small parts, for which predictions wait",
      "moka explain shows the regions and why they end. A larger batch gives each region more work; a small model is "
      "faster on the CPU.",
      [](const Subject& subject, Conclusions& to) {
        constexpr double kShortest = 200e-6, kLeastShare = 0.5;
        for (const Model& m : subject.models) {
          const Events regions = of_kind(m.compute, "region");
          const auto predictions = static_cast<double>(m.predictions.size());
          Events waits = filtered(m.compute, [](const Event& e) { return e.kind() == "submit" || e.kind() == "wait"; });
          const double all = seconds_of(m.predictions), waiting = seconds_of(waits);
          if (predictions < 3 || regions.empty() || all <= 0 || waiting < kLeastShare * all) continue;
          const double mean = seconds_of(regions) / static_cast<double>(regions.size());
          const double each = static_cast<double>(regions.size()) / predictions;
          if (mean > kShortest) continue;
          char shown[32];
          std::snprintf(shown, sizeof shown, "%.1f", each);
          to.add(m,
                 cat("submits ", shown, " regions a call, each of ", duration(mean), ", and waits for them ",
                     percent(waiting / all), " of its time: give the GPU larger parts"),
                 waits);
        }
      }};
}

}  // namespace moka::concluding
