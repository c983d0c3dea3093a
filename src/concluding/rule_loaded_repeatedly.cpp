// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "concluding/rule.h"

namespace moka::concluding {

namespace {

constexpr int64_t kFewestLoads = 3;
constexpr int64_t kPredictionsOfALoad = 10;  ///< with more, the model was kept for a while
constexpr double kLeastShare = 0.01;

/// What several processes, or one, did with the same file.
struct LoadsOfFile {
  Model all;
  std::set<std::string> processes;
  size_t most_in_one = 0;
};

void conclude_loads(const Subject& subject, LoadsOfFile& file, Conclusions& to) {
  const auto count = static_cast<int64_t>(file.all.loads.size());
  const auto predictions = static_cast<int64_t>(file.all.predictions.size());
  if (count < kFewestLoads || predictions >= kPredictionsOfALoad * count) return;
  const auto longest = std::max_element(file.all.loads.begin(), file.all.loads.end(),
                                        [](const Event* a, const Event* b) { return a->seconds() < b->seconds(); });
  const double again = seconds_of(file.all.loads) - (*longest)->seconds();
  if (again < kLeastShare * subject.seconds()) return;
  const std::string facts = cat("loaded ", count, " times for ", counted(predictions, "prediction"));
  if (file.most_in_one >= kFewestLoads || file.processes.size() == 1)
    return to.add(file.all, cat(facts, ": keep the model"), file.all.loads, again);
  file.all.process.clear();
  to.add(file.all, cat(facts, ", by ", file.processes.size(), " processes: let one process predict"), file.all.loads,
         again,
         "Start one program that loads the model and predicts all inputs, such as moka predict with several of them.");
}

}  // namespace

Rule rule_loaded_repeatedly() {
  return {"loaded-repeatedly", "The same model file is loaded again and again for few predictions",
          "Load the model once, before the loop, and share it: a loaded model may be used by many threads at once.",
          [](const Subject& subject, Conclusions& to) {
            std::map<std::string, LoadsOfFile> files;
            for (const Model& m : subject.models) {
              if (m.name.empty() || m.loads.empty()) continue;
              LoadsOfFile& f = files[m.path.empty() ? cat(m.process, "\n", m.name) : cat(m.path, "\n", m.name)];
              f.processes.insert(m.process);
              f.most_in_one = std::max(f.most_in_one, m.loads.size());
              if (f.all.name.empty()) {
                f.all = m;
                continue;
              }
              f.all.loads.insert(f.all.loads.end(), m.loads.begin(), m.loads.end());
              f.all.predictions.insert(f.all.predictions.end(), m.predictions.begin(), m.predictions.end());
            }
            for (auto& [path, file] : files) conclude_loads(subject, file, to);
          }};
}

}  // namespace moka::concluding
