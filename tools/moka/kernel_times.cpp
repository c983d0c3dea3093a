// SPDX-License-Identifier: Apache-2.0
#include "kernel_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/table.h"
#include "print.h"
#include "text.h"

namespace moka::cli {

namespace {
constexpr size_t kShownTimes = 10;
}  // namespace

double time_of(const PlannedOperation& operation, const std::string& kernel) {
  for (const KernelTime& t : operation.candidates)
    if (t.kernel == kernel) return t.seconds;
  return 0;
}

std::string kernel_times_text(const ComputePlan& plan, bool all) {
  std::vector<const PlannedOperation*> shown;
  for (const PlannedOperation& o : plan.operations)
    if (!o.candidates.empty()) shown.push_back(&o);
  if (shown.empty()) return {};
  const size_t count = shown.size();
  if (!all) {
    std::stable_sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) {
      return time_of(*a, a->kernel_by_rule) - time_of(*a, a->kernel) >
             time_of(*b, b->kernel_by_rule) - time_of(*b, b->kernel);
    });
    shown.resize(std::min(count, kShownTimes));
  }
  io::Table table({{"kernel chosen for", io::Shrink::middle},
                   {"kernel", io::Shrink::middle},
                   {"by", io::Align::left},
                   {"takes", io::Align::right},
                   {"the others", io::Shrink::wrap}});
  for (const PlannedOperation* o : shown) {
    std::vector<KernelTime> others;
    for (const KernelTime& t : o->candidates)
      if (t.kernel != o->kernel) others.push_back(t);
    std::sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    std::string text;
    for (const KernelTime& t : others)
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", t.kernel, format_seconds(t.seconds),
                          t.kernel == o->kernel_by_rule ? " (the rules')" : "");
    const double seconds = time_of(*o, o->kernel);
    table.add_row({o->name, o->kernel, o->chosen_by, seconds > 0 ? format_seconds(seconds) : "", text});
  }
  std::string out = "\n" + table_text(table);
  if (count > shown.size())
    out += dim(fmt::format("the {} that gain most of {}; --all shows them all", shown.size(),
                           plural(static_cast<int64_t>(count), "measured operation"))) +
           "\n";
  return out;
}

}  // namespace moka::cli
