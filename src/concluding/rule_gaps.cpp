// SPDX-License-Identifier: Apache-2.0
#include "concluding/repeated_data.h"

namespace moka::concluding {

Rule rule_gaps() {
  return {"gaps", "Each prediction copies arrays because their elements do not lie one after the other",
          "Slices, transposed arrays and padded rows have other strides. In Python, numpy.ascontiguousarray makes an "
          "array row-major once.",
          [](const Subject& subject, Conclusions& to) {
            for (const Model& m : subject.models)
              for (RepeatedData& found : repeated_data(m, 0.005, [](const Event& e) {
                     return e.text("reason").find("strides are not row-major") != std::string_view::npos ||
                            e.text("reason") == "its rows have gaps";
                   }))
                to.add(m,
                       cat("rearranges ", quoted(found.names), " ", times(found.a_call), " a call, because ",
                           found.reason.find("rows") == 4 ? "rows have gaps" : "strides are not row-major",
                           ": pass arrays without gaps"),
                       found.events);
          }};
}

}  // namespace moka::concluding
