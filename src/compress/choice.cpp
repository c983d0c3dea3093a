// SPDX-License-Identifier: Apache-2.0
#include "compress/choice.h"

#include <algorithm>

namespace moka::compress {
namespace {

/// Moves a weight from one of its options to the next smaller one.
struct Step {
  size_t weight, option;
  double rate;  ///< noise for each byte that is saved
};

/// The options of a weight from the least noise to the fewest bytes, without those above the line between two others.
std::vector<size_t> hull_of(const std::vector<Option>& options) {
  std::vector<size_t> order(options.size()), out;
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return options[a].noise != options[b].noise ? options[a].noise < options[b].noise
                                                : options[a].bytes < options[b].bytes;
  });
  for (const size_t next : order) {
    const Option& o = options[next];
    if (!out.empty() && o.bytes >= options[out.back()].bytes) continue;
    while (out.size() > 1) {
      const Option &a = options[out[out.size() - 2]], &b = options[out.back()];
      const auto saved_first = static_cast<double>(a.bytes - b.bytes), saved = static_cast<double>(a.bytes - o.bytes);
      if ((b.noise - a.noise) * saved < (o.noise - a.noise) * saved_first) break;
      out.pop_back();
    }
    out.push_back(next);
  }
  return out;
}

struct Path {
  Choice begin;
  std::vector<Step> steps;
};

Path path_of(const Options& options) {
  Path out;
  for (size_t weight = 0; weight < options.size(); ++weight) {
    const std::vector<size_t> hull = hull_of(options[weight]);
    const Option& first = options[weight][hull[0]];
    out.begin.options.push_back(hull[0]);
    out.begin.bytes += first.bytes;
    out.begin.noise += first.noise;
    for (size_t i = 1; i < hull.size(); ++i) {
      const Option &from = options[weight][hull[i - 1]], &to = options[weight][hull[i]];
      out.steps.push_back({weight, hull[i], (to.noise - from.noise) / static_cast<double>(from.bytes - to.bytes)});
    }
  }
  std::stable_sort(out.steps.begin(), out.steps.end(), [](const Step& a, const Step& b) { return a.rate < b.rate; });
  return out;
}

Choice moved(const Choice& choice, const Options& options, size_t weight, size_t option) {
  Choice out = choice;
  const Option &from = options[weight][choice.options[weight]], &to = options[weight][option];
  out.options[weight] = option;
  out.bytes = out.bytes - from.bytes + to.bytes;
  out.noise = 0;
  for (size_t i = 0; i < options.size(); ++i) out.noise += options[i][out.options[i]].noise;
  return out;
}

}  // namespace

std::vector<Choice> curve_of(const Options& options) {
  const Path path = path_of(options);
  std::vector<Choice> out{path.begin};
  for (const Step& step : path.steps) out.push_back(moved(out.back(), options, step.weight, step.option));
  return out;
}

Choice choose_by_noise(const Options& options, double noise) {
  const Path path = path_of(options);
  Choice out = path.begin;
  std::vector<bool> full(options.size());
  for (const Step& step : path.steps) {
    if (full[step.weight]) continue;
    Choice next = moved(out, options, step.weight, step.option);
    if (next.noise > noise)
      full[step.weight] = true;
    else
      out = std::move(next);
  }
  return out;
}

Choice choose_by_bytes(const Options& options, size_t bytes) {
  const Path path = path_of(options);
  Choice out = path.begin;
  size_t taken = 0;
  while (out.bytes > bytes && taken < path.steps.size()) {
    const Step& step = path.steps[taken++];
    out = moved(out, options, step.weight, step.option);
  }
  // The last step may have saved more than was needed.
  for (bool better = true; better;) {
    better = false;
    Choice best = out;
    for (size_t weight = 0; weight < options.size(); ++weight)
      for (size_t option = 0; option < options[weight].size(); ++option) {
        const Option &from = options[weight][out.options[weight]], &to = options[weight][option];
        if (to.noise >= from.noise || out.bytes - from.bytes + to.bytes > bytes) continue;
        if (out.noise - from.noise + to.noise >= best.noise) continue;
        best = moved(out, options, weight, option);
        better = best.noise < out.noise;
      }
    if (better) out = best;
  }
  return out;
}

}  // namespace moka::compress
