// SPDX-License-Identifier: Apache-2.0
#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_crossings() {
  return {"crossings", "Moving values between devices takes much of predictions",
          "moka explain shows which operations left the device and why. Fewer changes of device, larger batches and "
          "models whose operations one device takes move less.",
          [](const Subject& subject, Conclusions& to) {
            constexpr double kLeastShare = 0.25;
            for (const Model& m : subject.models) {
              Events crossings = filtered(m.data, [](const Event& e) {
                return e.kind() == "upload" || e.kind() == "download" || e.kind() == "transfer";
              });
              const double all = seconds_of(m.predictions), moving = seconds_of(crossings);
              if (crossings.size() < 3 || all <= 0 || moving < kLeastShare * all) continue;
              double bytes = 0;
              for (const Event* e : crossings) bytes += static_cast<double>(e->number("bytes"));
              const double count = static_cast<double>(m.predictions.size());
              char moved[32];
              std::snprintf(moved, sizeof moved, "%.1f", static_cast<double>(crossings.size()) / count);
              to.add(m,
                     cat("moves values between devices ", moved, " times a call, ",
                         static_cast<int64_t>(bytes / count / 1000), " kB and ", percent(moving / all),
                         " of its time: keep the operations on one device"),
                     crossings);
            }
          }};
}

}  // namespace moka::concluding
