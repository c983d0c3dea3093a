// SPDX-License-Identifier: Apache-2.0
#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moka::reporting {

namespace {
constexpr size_t kMostSamples = 2000;
}  // namespace

double percentile(std::span<const double> sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return percentile(samples, 0.5);
}

TimeStatistics statistics(std::vector<double> samples) {
  TimeStatistics out;
  out.count = samples.size();
  // Samples stay in the order of time, so that a comparison sees drift.
  const size_t step = (samples.size() + kMostSamples - 1) / kMostSamples;
  for (size_t i = 0; i < samples.size(); i += step) out.samples.push_back(samples[i]);
  out.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  std::sort(samples.begin(), samples.end());
  out.median = percentile(samples, 0.5);
  out.p90 = percentile(samples, 0.9);
  out.p99 = percentile(samples, 0.99);
  out.minimum = samples.front();
  out.maximum = samples.back();
  return out;
}

}  // namespace moka::reporting
