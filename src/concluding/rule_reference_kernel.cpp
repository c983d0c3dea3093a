// SPDX-License-Identifier: Apache-2.0
#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_reference_kernel() {
  return {
      "reference-kernel", "Operations that no fast kernel takes need much of the time",
      "docs/operations.md lists the kernels of each operation and what they take. Another form of the operation, or "
      "another type, may have one.",
      [](const Subject& subject, Conclusions& to) {
        constexpr double kLeastShare = 0.1, kLeastOfPredictions = 0.05;
        for (const Model& m : subject.models) {
          const double all = seconds_of(m.operations);
          const Events slow = filtered(m.operations, [](const Event& e) { return e.text("device") == "reference"; });
          // A program that asks for the device gets it.
          if (slow.size() == m.operations.size()) continue;
          for (auto& [name, events] : grouped(slow, [](const Event& e) { return e.name(); })) {
            const double spent = seconds_of(events);
            if (spent < kLeastShare * all || spent < kLeastOfPredictions * seconds_of(m.predictions)) continue;
            const std::string type = events.front()->kind();
            to.add(m,
                   cat("spends ", percent(spent / all), " of its computing time in '", name, "' (", type,
                       "), which no fast kernel takes"),
                   events);
          }
        }
      }};
}

}  // namespace moka::concluding
