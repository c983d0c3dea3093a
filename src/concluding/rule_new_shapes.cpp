// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_new_shapes() {
  return {
      "new-shapes", "Predictions make plans again, because their inputs have new shapes",
      "Pad inputs to a few sizes, or declare the sizes that occur (enumerated shapes), so that plans are found again.",
      [](const Subject& subject, Conclusions& to) {
        for (const Model& m : subject.models) {
          Events plans = filtered(m.activity, [](const Event& e) {
            return e.kind() == "plan" && e.is_inside("predict") && !e.is_inside("plan");
          });
          std::set<const Event*> of;
          for (const Event* e : plans) of.insert(e->parent);
          if (of.size() < 3 || 10 * of.size() < m.predictions.size()) continue;
          to.add(m,
                 cat("plans again in ", of.size(), " of ",
                     counted(static_cast<int64_t>(m.predictions.size()), "prediction"),
                     ", for new shapes: pad inputs to a few sizes"),
                 plans);
        }
      }};
}

}  // namespace moka::concluding
