// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_packed_again() {
  return {"packed-again", "Weights are prepared for kernels at each of several loads",
          "A cache keeps prepared weights on disk: --cache, MOKA_CACHE or ModelConfiguration::cache.",
          [](const Subject& subject, Conclusions& to) {
            std::map<std::string, std::pair<Model, Events>> files;
            for (const Model& m : subject.models) {
              if (m.path.empty()) continue;
              auto& [all, packing] = files[cat(m.path, "\n", m.name)];
              if (all.name.empty()) {
                all.name = m.name;
                all.process = m.process;
              } else if (all.process != m.process) {
                all.process.clear();
              }
              all.loads.insert(all.loads.end(), m.loads.begin(), m.loads.end());
              for (const Event* e : of_kind(m.activity, "prepare kernels"))
                if (e->is_inside("load")) packing.push_back(e);
            }
            for (auto& [path, found] : files) {
              auto& [all, packing] = found;
              const double loading = seconds_of(all.loads), packed = seconds_of(packing);
              if (all.loads.size() < 3 || packed < 0.2 * loading || packed < 0.02) continue;
              double longest = 0;
              for (const Event* e : packing) longest = std::max(longest, e->seconds());
              const auto count = static_cast<int64_t>(all.loads.size());
              to.add(all,
                     cat("prepares weights at ", count, " loads, ", percent(packed / loading),
                         " of the time of loading: use a cache"),
                     packing, packed - longest);
            }
          }};
}

}  // namespace moka::concluding
