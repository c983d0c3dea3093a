// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "concluding/rule.h"

namespace moka::concluding {

namespace {

constexpr size_t kFewestRows = 200;
constexpr double kLongestRow = 200e-6;  ///< with longer ones, the fixed cost of a prediction does not matter

/// Whether the caller handed the inputs over together.
bool is_of_batch(const Model& model, const Event& e) {
  if (e.is_inside("predict rows") || e.is_inside("predict batch")) return true;
  for (const Event* other : model.activity)
    if ((other->kind() == "predict rows" || other->kind() == "predict batch") && other->slice->from <= e.slice->from &&
        other->slice->to >= e.slice->to)
      return true;
  return false;
}

/// The predictions of a thread that follow another one at once.
Events tight(const Events& predictions) {
  Events out;
  std::map<std::string, const Event*> last;
  for (const Event* e : predictions) {
    const Event*& before = last[e->track->thread];
    if (before != nullptr &&
        static_cast<double>(e->slice->from - before->slice->to) * 1e-9 < 3 * (e->seconds() + before->seconds()))
      out.push_back(e);
    before = e;
  }
  return out;
}

}  // namespace

Rule rule_single_rows() {
  return {"single-rows", "A loop makes many short predictions, whose fixed cost is most of them",
          "predict_rows takes a table, predict_batch a list of inputs. Both divide the work among threads.",
          [](const Subject& subject, Conclusions& to) {
            constexpr double kLeastShare = 0.5;
            for (const Model& m : subject.models) {
              Events rows = tight(filtered(m.predictions, [](const Event& e) { return e.seconds() < kLongestRow; }));
              if (rows.size() < kFewestRows || is_of_batch(m, *rows[rows.size() / 2]) ||
                  2 * rows.size() < m.predictions.size())
                continue;
              const double all = seconds_of(m.predictions);
              const double computing = seconds_of(m.operations);
              if (all - computing < kLeastShare * all) continue;
              const auto count = static_cast<int64_t>(rows.size());
              to.add(
                  m,
                  cat("makes ", count, " predictions of ", duration(seconds_of(rows) / static_cast<double>(count)),
                      " in a loop, ", percent((all - computing) / all), " of it outside of operations: predict rows"),
                  rows, all - computing);
            }
          }};
}

}  // namespace moka::concluding
