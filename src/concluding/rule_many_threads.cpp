// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_many_threads() {
  return {
      "many-threads", "Operations of a few microseconds are divided among many threads",
      "Load the model with fewer threads (--threads, ModelConfiguration::threads), and use the others for further "
      "predictions.",
      [](const Subject& subject, Conclusions& to) {
        constexpr double kShort = 10e-6, kLeastShare = 0.5;
        for (const Model& m : subject.models) {
          if (m.predictions.size() < 10) continue;
          Events divided;
          int64_t most = 0;
          const Events parallel = filtered(m.operations, [](const Event& e) { return e.number("threads") > 1; });
          for (const auto& [name, events] : grouped(parallel, [](const Event& e) { return e.name(); })) {
            if (seconds_of(events) > kShort * static_cast<double>(events.size())) continue;
            divided.insert(divided.end(), events.begin(), events.end());
            for (const Event* e : events) most = std::max(most, e->number("threads"));
          }
          if (divided.empty() || seconds_of(divided) < kLeastShare * seconds_of(m.operations)) continue;
          const double mean = seconds_of(divided) / static_cast<double>(divided.size());
          to.add(m, cat("divides operations of ", duration(mean), " among ", most, " threads: load with fewer threads"),
                 divided);
        }
      }};
}

}  // namespace moka::concluding
