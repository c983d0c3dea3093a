// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_waits() {
  return {
      "waits", "Predictions wait for others to end, for a turn or for memory",
      "At most as many predictions compute at a time as there are processors, and only while the memory of the load "
      "options suffices. More threads that predict only wait.",
      [](const Subject& subject, Conclusions& to) {
        constexpr double kLeastShare = 0.1;
        for (const Model& m : subject.models)
          for (const auto& [kind, what] : {std::pair("wait for a turn", "a turn"), {"wait for memory", "memory"}}) {
            Events waits = of_kind(m.activity, kind);
            const double all = seconds_of(m.predictions), waiting = seconds_of(waits);
            if (waits.size() < 3 || waiting < kLeastShare * all || all <= 0) continue;
            std::set<std::string> threads;
            for (const Event* e : waits) threads.insert(e->track->thread);
            to.add(m,
                   cat("waits ", percent(waiting / all), " of the time of its predictions for ", what, ", in ",
                       counted(static_cast<int64_t>(threads.size()), "thread"), ": predict from fewer threads"),
                   waits);
          }
      }};
}

}  // namespace moka::concluding
