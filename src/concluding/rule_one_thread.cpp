// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_one_thread() {
  return {"one-thread",
          "Most of the time of predictions goes to operations that one thread computes while the others wait",
          "Predict from several threads, or several inputs at a time (predict_batch), so that the other threads have "
          "work. moka explain says which operations are divided among threads.",
          [](const Subject& subject, Conclusions& to) {
            constexpr double kLeastShare = 0.5;
            for (const Model& m : subject.models) {
              int64_t most = 0;
              for (const Event* e : m.operations) most = std::max(most, e->number("threads"));
              const double all = seconds_of(m.operations);
              Events alone = filtered(m.operations, [](const Event& e) { return e.number("threads") <= 1; });
              const double waiting = seconds_of(alone);
              if (most < 2 || m.predictions.size() < 3 || all <= 0 || waiting < kLeastShare * all) continue;
              std::map<std::string, double> by_name;
              for (const Event* e : alone) by_name[cat("'", e->name(), "' (", e->kind(), ")")] += e->seconds();
              const auto slowest = std::max_element(by_name.begin(), by_name.end(),
                                                    [](const auto& a, const auto& b) { return a.second < b.second; });
              to.add(m,
                     cat("waits ", percent(waiting / all), " of the time for one thread of ", most, ": ",
                         slowest->first, " takes ", percent(slowest->second / all)),
                     alone, waiting * (1 - 1 / static_cast<double>(most)));
            }
          }};
}

}  // namespace moka::concluding
