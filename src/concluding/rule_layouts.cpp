// SPDX-License-Identifier: Apache-2.0
#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_layouts() {
  return {
      "layouts", "Conversions between layouts of kernels take much of the computing time",
      "moka explain shows between which operations they stand. moka tune measures other kernels; a pin chooses one.",
      [](const Subject& subject, Conclusions& to) {
        constexpr double kLeastShare = 0.15;
        for (const Model& m : subject.models) {
          Events conversions = of_kind(m.compute, "convert_layout");
          const double spent = seconds_of(conversions), all = spent + seconds_of(m.operations);
          if (conversions.size() < 3 || all <= 0 || spent < kLeastShare * all) continue;
          const auto a_call = static_cast<int64_t>(conversions.size() / std::max<size_t>(1, m.predictions.size()));
          to.add(m,
                 cat("converts layouts ", times(std::max<int64_t>(1, a_call)), " a call, ", percent(spent / all),
                     " of its computing time: try moka tune"),
                 conversions);
        }
      }};
}

}  // namespace moka::concluding
