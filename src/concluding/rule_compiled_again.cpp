// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "concluding/rule.h"

namespace moka::concluding {

Rule rule_compiled_again() {
  return {"compiled-again", "The same model is compiled again and again",
          "Compile the model once (moka compile) and load the .mlmodelc folder.",
          [](const Subject& subject, Conclusions& to) {
            std::map<std::string, std::pair<const Model*, Events>> compiled;
            for (const Model& m : subject.models)
              for (const Event* e : of_kind(m.activity, "compile")) {
                auto& [model, events] = compiled[e->name()];
                model = &m;
                events.push_back(e);
              }
            for (auto& [name, found] : compiled) {
              auto& [model, events] = found;
              if (events.size() < 2) continue;
              double longest = 0;
              for (const Event* e : events) longest = std::max(longest, e->seconds());
              const std::string what = name.starts_with("compile ") ? name.substr(8) : name;
              const auto count = static_cast<int64_t>(events.size());
              const double again = seconds_of(events) - longest;
              to.add(*model, cat("compiles '", what, "' ", times(count), ": keep the compiled model"), events, again);
            }
          }};
}

}  // namespace moka::concluding
