// SPDX-License-Identifier: Apache-2.0
#include "concluding/repeated_data.h"

namespace moka::concluding {

Rule rule_pixels() {
  return {
      "pixels", "Turning pixels into planes takes much of each prediction",
      "A picture that is predicted more than once can be turned into an array once. Grayscale images of float16 are "
      "used where they lie.",
      [](const Subject& subject, Conclusions& to) {
        for (const Model& m : subject.models)
          for (RepeatedData& found : repeated_data(m, 0.2, [](const Event& e) {
                 return e.text("reason").starts_with("pixels to planes") || e.text("reason").starts_with("planes of ");
               })) {
            const bool is_input = found.reason.starts_with("pixels");
            const double share = seconds_of(found.events) / seconds_of(m.predictions);
            to.add(m,
                   cat("spends ", percent(share), " of its predictions on ",
                       is_input ? "turning pixels of " : "making pixels of ", quoted(found.names),
                       is_input ? " into planes: pass arrays" : ": ask for arrays"),
                   found.events);
          }
      }};
}

}  // namespace moka::concluding
