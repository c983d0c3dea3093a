// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

namespace {

using vector::loops;

/// A number and its position in one integer: larger entries come first in the result.
using Entry = uint64_t;

constexpr int64_t kFewEntries = 512;  // sorted by comparisons; more of them by their digits
constexpr int kDigits = 3, kDigitBits = 11;
constexpr int64_t kDigitValues = int64_t{1} << kDigitBits;

inline Entry entry_of(int32_t key, int64_t index) {
  return static_cast<Entry>(static_cast<uint32_t>(key) ^ 0x80000000u) << 32 |
         (std::numeric_limits<uint32_t>::max() - static_cast<uint32_t>(index));
}
inline int64_t index_of(Entry e) { return std::numeric_limits<uint32_t>::max() - static_cast<uint32_t>(e); }
inline int32_t key_of(Entry e) { return static_cast<int32_t>(static_cast<uint32_t>(e >> 32) ^ 0x80000000u); }

/// Sorts entries whose positions ascend, best first. `spare` holds as many, and `counts` kDigitValues.
void sort_by_digits(Entry* entries, int64_t n, Entry* spare, int64_t* counts) {
  for (int digit = 0; digit < kDigits; digit++) {
    const int shift = 32 + digit * kDigitBits;
    const auto value = [=](Entry e) { return static_cast<size_t>(~e >> shift) & (kDigitValues - 1); };
    std::fill_n(counts, kDigitValues, 0);
    for (int64_t i = 0; i < n; i++) counts[value(entries[i])]++;
    int64_t at = 0;
    for (int64_t v = 0; v < kDigitValues; v++) at += std::exchange(counts[v], at);
    for (int64_t i = 0; i < n; i++) spare[counts[value(entries[i])]++] = entries[i];
    std::swap(entries, spare);
  }
}

/// Finds and sorts the best k numbers of rows of n.
struct Sorting {
  int64_t n, k;
  int32_t flip;  ///< -1: ascending

  /// The capacity of the buffer of candidates. When it is full, all but the best k are dropped.
  int64_t most() const { return std::min(n, std::max<int64_t>(4 * k, 256)); }
  /// Layout of the scratch memory: entries, as many for sorting by digits, counts, a row whose elements are not
  /// adjacent.
  size_t scratch_bytes(bool strided) const {
    return static_cast<size_t>(2 * most()) * sizeof(Entry) + kDigitValues * sizeof(int64_t) +
           (strided ? static_cast<size_t>(n) * sizeof(float) : 0);
  }
  Entry* spare(std::byte* scratch) const { return reinterpret_cast<Entry*>(scratch) + most(); }
  int64_t* counts(std::byte* scratch) const { return reinterpret_cast<int64_t*>(spare(scratch) + most()); }
  float* row(std::byte* scratch) const { return reinterpret_cast<float*>(counts(scratch) + kDigitValues); }

  /// A key that at least k numbers of a row reach. Each of many stripes of the row has its best number, and the k-th
  /// best of those is rarely far from the k-th best number.
  int32_t reached(const float* x) const {
    constexpr int64_t kLong = 8;  // least length of a stripe
    const int64_t stripes = (2 * k + 15) / 16 * 16;
    if (stripes > vector::kMostStripes || n < kLong * stripes) return vector::kKeyOfNaN;
    int32_t tops[vector::kMostStripes];
    loops().best_of_stripes(x, n, flip, stripes, tops);
    std::nth_element(tops, tops + k - 1, tops + stripes, std::greater<>());
    return tops[k - 1] == vector::kKeyOfWorst ? vector::kKeyOfNaN : tops[k - 1];
  }

  /// The sorted entries of the best k numbers.
  const Entry* best(const float* x, std::byte* scratch) const {
    constexpr int64_t kRun = 256;
    auto* entries = reinterpret_cast<Entry*>(scratch);
    int64_t count = 0;
    int32_t least = reached(x);  // what a number has to reach
    for (int64_t first = 0; first < n; first += kRun) {
      int32_t keys[kRun], places[kRun];
      const int64_t found = loops().select_at_least(x + first, std::min(n - first, kRun), flip, least, keys, places);
      for (int64_t i = 0; i < found; i++) {
        if (keys[i] < least) continue;
        if (count == most()) {
          std::nth_element(entries, entries + k - 1, entries + count, std::greater<>());
          count = k;
          least = key_of(entries[k - 1]) + 1;  // later ones of the same key come behind
          if (keys[i] < least) continue;
        }
        entries[count++] = entry_of(keys[i], first + places[i]);
      }
    }
    if (count > 4 * k) std::nth_element(entries, entries + k - 1, entries + count, std::greater<>()), count = k;
    const bool in_order = count == n;
    if (count <= kFewEntries || !in_order) {
      std::sort(entries, entries + count, std::greater<>());
      return entries;
    }
    sort_by_digits(entries, count, spare(scratch), counts(scratch));
    return kDigits % 2 == 0 ? entries : spare(scratch);
  }
};

Match match_sorting(const MatchCall& m) {
  const bool values = m.call.version().def->name == "topk";
  if (m.call.dtype("x") != ir::DType::fp32) return Match::no(cat("element type ", m.call.dtype("x")));
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  auto axis = m.call.integer("axis");
  auto ascending = m.call.flag("ascending");
  if (!axis.ok() || !ascending.ok()) return Match::no("a parameter that is not constant");
  if (x.count() == 0 || y.count() == 0) return Match::no("an empty tensor");
  const int at = static_cast<int>(*axis < 0 ? *axis + x.rank() : *axis);
  const int64_t n = x[at], inner = x.count(at + 1, x.rank());
  if (n > std::numeric_limits<int32_t>::max()) return Match::no("more than 2^31 elements along the axis");
  const Sorting s{n, y[at], *ascending ? -1 : 0};
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const size_t indices = values ? 1 : 0;
  KernelChoice c;
  c.kernel = "cpu.sort";
  c.tiles = x.count() / n;
  c.thread_scratch = s.scratch_bytes(inner > 1);
  constexpr double kEach = 20;  // floating-point operations in the time of one entry
  c.cost = cost_of(m, kEach * static_cast<double>(x.count()), traffic(m));
  c.run = [=](const KernelArgs& args) -> Status {
    auto* scratch = args.own<std::byte>();
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t outer = t / inner, column = t % inner;
      const float* row = args.in[in].as<float>() + outer * n * inner + column;
      if (inner > 1) {
        float* copy = s.row(scratch);
        for (int64_t i = 0; i < n; i++) copy[i] = row[i * inner];
        row = copy;
      }
      const Entry* best = s.best(row, scratch);
      for (int64_t i = 0; i < s.k; i++) {
        const int64_t to = (outer * s.k + i) * inner + column, index = index_of(best[i]);
        if (values) args.out[0].as<float>()[to] = row[index];
        if (indices < args.out.size()) ir::store_i64(args.out[indices], to, index);
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_sorting() {
  static const KernelDef defs[] = {{.name = "cpu.sort", .ops = {"topk", "argsort"}, .match = match_sorting}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
