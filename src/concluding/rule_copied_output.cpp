// SPDX-License-Identifier: Apache-2.0
#include "concluding/repeated_data.h"

namespace moka::concluding {

Rule rule_copied_output() {
  return {"copied-output", "Each prediction copies outputs that could be computed where the caller wants them",
          "A result is computed in the memory of an output backing of its type and shape that overlaps no input and no "
          "other backing (moka::Model::predict with outputs).",
          [](const Subject& subject, Conclusions& to) {
            for (const Model& m : subject.models)
              for (RepeatedData& found : repeated_data(m, 0.01, [](const Event& e) {
                     return e.kind() == "copy" && e.text("reason") == "it is not computed in memory of its own";
                   }))
                to.add(m,
                       cat("copies output", found.names.size() == 1 ? " " : "s ", quoted(found.names), " ",
                           times(found.a_call), " a call: pass backings that overlap nothing"),
                       found.events);
          }};
}

}  // namespace moka::concluding
