// SPDX-License-Identifier: Apache-2.0
#include "compress/kmeans.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "compress/blocks.h"

namespace moka::compress {
namespace {

constexpr size_t kGroups = 16384, kRounds = 1000;

/// Sorts by three passes over digits of 11 bits.
void sort_numbers(std::vector<float>& values) {
  constexpr unsigned bits = 11;
  constexpr size_t digits = size_t{1} << bits;
  std::vector<uint32_t> keys(values.size()), other(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t k = 0;
    std::memcpy(&k, &values[i], sizeof k);
    keys[i] = (k & 0x80000000U) != 0 ? ~k : k | 0x80000000U;
  }
  for (unsigned shift = 0; shift < 32; shift += bits) {
    std::vector<size_t> at(digits + 1);
    for (const uint32_t k : keys) ++at[((k >> shift) & (digits - 1)) + 1];
    for (size_t d = 0; d < digits; ++d) at[d + 1] += at[d];
    for (const uint32_t k : keys) other[at[(k >> shift) & (digits - 1)]++] = k;
    keys.swap(other);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t k = (keys[i] & 0x80000000U) != 0 ? keys[i] & 0x7FFFFFFFU : ~keys[i];
    std::memcpy(&values[i], &k, sizeof k);
  }
}

/// Different values in ascending order with sums of how often they occur, of them and of their squares.
struct Points {
  std::vector<float> values;
  std::vector<double> counts{0}, sums{0}, squares{0};

  void add(float value, double count, double sum, double square) {
    values.push_back(value);
    counts.push_back(counts.back() + count);
    sums.push_back(sums.back() + sum);
    squares.push_back(squares.back() + square);
  }
  size_t size() const { return values.size(); }
  double mean(size_t begin, size_t end) const { return (sums[end] - sums[begin]) / (counts[end] - counts[begin]); }
  /// The squared distances of [begin, end) to their mean.
  double cost(size_t begin, size_t end) const {
    const double sum = sums[end] - sums[begin], count = counts[end] - counts[begin];
    return squares[end] - squares[begin] - sum * sum / count;
  }
};

Points points_of(std::span<const float> values) {
  std::vector<float> sorted(values.begin(), values.end());
  sort_numbers(sorted);
  Points out;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
    const auto count = static_cast<double>(end - i), value = static_cast<double>(sorted[i]);
    out.add(sorted[i], count, count * value, count * value * value);
    i = end;
  }
  return out;
}

/// Joins neighbors to at most kGroups groups of about equal weight. `ends` gets the index after each group.
Points grouped(const Points& points, std::vector<size_t>& ends) {
  Points out;
  const double share = points.counts.back() / static_cast<double>(kGroups);
  const bool all = points.size() <= kGroups;
  for (size_t begin = 0; begin < points.size();) {
    size_t end = begin + 1;
    while (!all && end < points.size() && points.counts[end] - points.counts[begin] < share) ++end;
    out.add(points.values[begin], points.counts[end] - points.counts[begin], points.sums[end] - points.sums[begin],
            points.squares[end] - points.squares[begin]);
    ends.push_back(end);
    begin = end;
  }
  return out;
}

/// Fills row[begin..end) of the dynamic program; the best cut of a row moves only upward.
void fill_row(const Points& p, const std::vector<double>& before, std::vector<double>& row, std::vector<uint16_t>& cut,
              size_t begin, size_t end, size_t low, size_t high) {
  if (begin >= end) return;
  const size_t middle = (begin + end) / 2;
  double best = std::numeric_limits<double>::infinity();
  size_t at = low;
  for (size_t c = low; c <= std::min(middle, high); ++c) {
    const double cost = before[c] + (c == middle ? 0 : p.cost(c, middle));
    if (cost < best) {
      best = cost;
      at = c;
    }
  }
  row[middle] = best;
  cut[middle] = static_cast<uint16_t>(at);
  fill_row(p, before, row, cut, begin, middle, low, at);
  fill_row(p, before, row, cut, middle + 1, end, at, high);
}

/// The first point of each of `count` optimal clusters.
std::vector<size_t> optimal_cuts(const Points& p, size_t count) {
  const size_t n = p.size();
  std::vector<std::vector<uint16_t>> cuts(count, std::vector<uint16_t>(n + 1));
  std::vector<double> before(n + 1), row(n + 1);
  for (size_t i = 1; i <= n; ++i) before[i] = p.cost(0, i);
  for (size_t k = 1; k < count; ++k) {
    fill_row(p, before, row, cuts[k], 0, n + 1, 0, n);
    before.swap(row);
  }
  std::vector<size_t> out(count);
  size_t end = n;
  for (size_t k = count; k-- > 0;) end = out[k] = k == 0 ? 0 : cuts[k][end];
  return out;
}

/// Moves centers to the means of their values until nothing changes.
void improve(const Points& p, std::vector<double>& centers) {
  std::vector<size_t> before;
  for (size_t round = 0; round < kRounds; ++round) {
    std::vector<size_t> first{0};
    for (size_t k = 1; k < centers.size(); ++k) {
      const auto middle = static_cast<float>((centers[k - 1] + centers[k]) / 2);
      first.push_back(
          static_cast<size_t>(std::upper_bound(p.values.begin(), p.values.end(), middle) - p.values.begin()));
    }
    if (first == before) return;
    for (size_t k = 0; k < centers.size(); ++k) {
      const size_t end = k + 1 < centers.size() ? first[k + 1] : p.size();
      if (first[k] < end) centers[k] = p.mean(first[k], end);
    }
    before = std::move(first);
  }
}

double distance(const float* a, const float* b, size_t size) {
  float sum = 0;
  for (size_t i = 0; i < size; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return static_cast<double>(sum);
}

}  // namespace

std::vector<float> centers_of(std::span<const float> values, size_t count) {
  const Points points = points_of(values);
  if (points.size() <= count) return points.values;
  std::vector<size_t> ends;
  const Points groups = grouped(points, ends);
  count = std::min(count, groups.size());
  const std::vector<size_t> cuts = optimal_cuts(groups, count);
  std::vector<double> centers;
  for (size_t k = 0; k < count; ++k) {
    const size_t end = k + 1 < count ? cuts[k + 1] : groups.size();
    if (cuts[k] < end) centers.push_back(groups.mean(cuts[k], end));
  }
  improve(points, centers);
  return {centers.begin(), centers.end()};
}

uint8_t nearest(std::span<const float> centers, float value) {
  size_t low = 0, high = centers.size() - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const bool right = static_cast<double>(value) * 2 >
                       static_cast<double>(centers[middle]) + static_cast<double>(centers[middle + 1]);
    (right ? low : high) = right ? middle + 1 : middle;
  }
  return static_cast<uint8_t>(low);
}

uint8_t nearest_vector(std::span<const float> centers, std::span<const float> vector) {
  const size_t size = vector.size(), count = centers.size() / size;
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < count; ++k)
    if (const double d = distance(&centers[k * size], vector.data(), size); d < least) {
      least = d;
      best = k;
    }
  return static_cast<uint8_t>(best);
}

namespace {

/// Centers far apart: each next one is drawn in proportion to its squared distance.
std::vector<float> seeded(std::span<const float> sample, size_t size, size_t count, std::mt19937& random) {
  const size_t used = sample.size() / size;
  const size_t first = std::uniform_int_distribution<size_t>(0, used - 1)(random);
  std::vector<float> centers(&sample[first * size], &sample[first * size] + size);
  std::vector<double> far(used, std::numeric_limits<double>::infinity());
  while (centers.size() < count * size) {
    double total = 0;
    for (size_t i = 0; i < used; ++i) {
      far[i] = std::min(far[i], distance(&sample[i * size], &centers[centers.size() - size], size));
      total += far[i];
    }
    if (total == 0) break;  // every different vector is a center
    double at = std::uniform_real_distribution<double>(0, total)(random);
    size_t chosen = 0;
    while (chosen + 1 < used && (at -= far[chosen]) > 0) ++chosen;
    centers.insert(centers.end(), &sample[chosen * size], &sample[chosen * size] + size);
  }
  return centers;
}

/// Moves the centers to the means of their vectors, up to `rounds` times. Returns the sum of squared distances.
double improve(std::span<const float> sample, size_t size, size_t rounds, std::vector<float>& centers) {
  const size_t used = sample.size() / size;
  std::vector<uint8_t> codes(used), before;
  std::vector<double> costs(used);
  for (size_t round = 0; round < rounds && codes != before; ++round) {
    constexpr size_t step = 4096;
    before = round == 0 ? std::vector<uint8_t>() : codes;
    in_parallel((used + step - 1) / step, [&](size_t part) {
      for (size_t i = part * step; i < std::min(used, (part + 1) * step); ++i) {
        codes[i] = nearest_vector(centers, sample.subspan(i * size, size));
        costs[i] = distance(&sample[i * size], &centers[codes[i] * size], size);
      }
    });
    if (codes == before) break;
    std::vector<double> sums(centers.size()), counts(centers.size() / size);
    for (size_t i = 0; i < used; ++i) {
      ++counts[codes[i]];
      for (size_t d = 0; d < size; ++d) sums[codes[i] * size + d] += static_cast<double>(sample[i * size + d]);
    }
    for (size_t i = 0; i < centers.size(); ++i)
      if (counts[i / size] > 0) centers[i] = static_cast<float>(sums[i] / counts[i / size]);
  }
  double cost = 0;
  for (const double c : costs) cost += c;
  return cost;
}

}  // namespace

std::vector<float> vector_centers(std::span<const float> vectors, size_t size, size_t count) {
  constexpr size_t most = 65536, rounds = 50, most_trials = 64, work = size_t{1} << 22;
  const size_t all = vectors.size() / size, used = std::min(all, most);
  std::vector<float> sample, best;
  for (size_t i = 0; i < used; ++i) {
    const float* from = &vectors[i * all / used * size];
    sample.insert(sample.end(), from, from + size);
  }
  std::mt19937 random(1);
  double least = std::numeric_limits<double>::infinity();
  for (size_t trial = 0; trial < std::clamp(work / (used * count), size_t{1}, most_trials); ++trial) {
    std::vector<float> centers = seeded(sample, size, count, random);
    const double cost = improve(sample, size, rounds, centers);
    if (cost >= least) continue;
    least = cost;
    best = std::move(centers);
  }
  return best;
}

}  // namespace moka::compress
