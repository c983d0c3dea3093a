// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "linting/lint.h"
#include "opdocs/opdocs.h"

/// The rules of `moka lint`.
namespace moka::opdocs {

std::string rules_markdown() {
  std::vector<const linting::Rule*> rules;
  for (const linting::Rule& rule : linting::rules()) rules.push_back(&rule);
  std::sort(rules.begin(), rules.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  std::string out =
      "# Rules of moka lint\n\n"
      "`make docs` writes this page from the rules in `src/linting`, and `moka lint --rules` prints them. "
      "[linting.md](linting.md) explains levels, measurements and repairs.\n\n"
      "| rule | highest level | finds | remedy | `--fix` |\n|---|---|---|---|---|\n";
  constexpr const char* kLevels[] = {"note", "warning", "error"};
  for (const linting::Rule* rule : rules)
    out += cat("| `", rule->name, "` | ", kLevels[static_cast<int>(rule->level)], " | ", rule->summary, " | ",
               rule->remedy, " | ", rule->fix != nullptr ? "yes" : "", " |\n");
  return out;
}

}  // namespace moka::opdocs
