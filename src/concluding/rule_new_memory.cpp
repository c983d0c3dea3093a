// SPDX-License-Identifier: Apache-2.0
#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_new_memory() {
  return {"new-memory", "Predictions make memory for themselves again and again",
          "Memory is kept for a later prediction of the same shape, as far as the limit allows. Keep the model, and "
          "predict from a constant number of threads.",
          [](const Subject& subject, Conclusions& to) {
            for (const Model& m : subject.models) {
              Events made = filtered(
                  m.activity, [](const Event& e) { return e.kind() == "make session" && e.is_inside("predict"); });
              const double all = seconds_of(m.predictions);
              // Each load and each thread needs one. Where plans are made, rule new-shapes tells.
              const Events plans =
                  filtered(m.activity, [](const Event& e) { return e.kind() == "plan" && e.is_inside("predict"); });
              if (made.size() < 5 + m.loads.size() + plans.size() || seconds_of(made) < 0.05 * all) continue;
              to.add(m,
                     cat("makes memory in ", made.size(), " of ",
                         counted(static_cast<int64_t>(m.predictions.size()), "prediction"), ", ",
                         percent(seconds_of(made) / all), " of their time: raise the memory limit"),
                     made);
            }
          }};
}

}  // namespace moka::concluding
