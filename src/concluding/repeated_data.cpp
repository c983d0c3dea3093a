// SPDX-License-Identifier: Apache-2.0
#include "concluding/repeated_data.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace moka::concluding {

namespace {

constexpr size_t kFewestPredictions = 5;

}  // namespace

std::vector<RepeatedData> repeated_data(const Model& model, double least_share,
                                        const std::function<bool(const Event&)>& is_meant) {
  std::vector<RepeatedData> out;
  const size_t predictions = model.predictions.size();
  if (predictions < kFewestPredictions) return out;
  const double computing = seconds_of(model.predictions);
  const auto groups = grouped(filtered(model.data, is_meant), [&](const Event& e) {
    return cat(is_before_computing(model, e) ? "i" : "o", e.text("reason"));
  });
  for (const auto& [key, events] : groups) {
    if (2 * events.size() < predictions || seconds_of(events) < least_share * computing) continue;
    RepeatedData found{key.substr(1), {}, key[0] == 'i', events, 0};
    std::set<std::string> names;
    for (const Event* e : events) names.insert(e->name());
    found.names.assign(names.begin(), names.end());
    found.a_call =
        std::max<int64_t>(1, std::llround(static_cast<double>(events.size()) / static_cast<double>(predictions)));
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace moka::concluding
