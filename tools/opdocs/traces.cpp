// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "concluding/rule.h"
#include "opdocs/opdocs.h"

/// The rules about traces.
namespace moka::opdocs {

std::string trace_rules_markdown() {
  std::vector<const concluding::Rule*> rules;
  for (const concluding::Rule& rule : concluding::rules()) rules.push_back(&rule);
  std::sort(rules.begin(), rules.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  std::string out =
      "# Rules of moka trace\n\n"
      "`make docs` writes this page from the rules in `src/concluding`, and `moka trace --list-rules` prints them. "
      "[seeing.md](seeing.md#conclusions) explains conclusions.\n\n"
      "| rule | concludes when | what helps |\n|---|---|---|\n";
  for (const concluding::Rule* rule : rules)
    out += cat("| `", rule->name, "` | ", rule->summary, " | ", rule->remedy, " |\n");
  return out;
}

}  // namespace moka::opdocs
