// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <type_traits>

#include "devices/cpu/common/index_vectors.h"
#include "devices/cpu/kernels/family.h"
#include "ops/common/indexing.h"

namespace moka::devices::cpu {

namespace {

using ops::Combine;

constexpr int64_t kPositions = 512;  // found at once

/// Combines an element with its update. Integers wrap.
template <Combine rule, class T>
T combined(T a, T b) {
  if constexpr (rule == Combine::update) {
    return b;
  } else if constexpr (std::is_floating_point_v<T>) {
    switch (rule) {
      case Combine::add: return a + b;
      case Combine::sub: return a - b;
      case Combine::mul: return a * b;
      case Combine::div: return a / b;
      case Combine::max: return b > a || std::isnan(b) ? b : a;
      default: return b < a || std::isnan(b) ? b : a;
    }
  } else {
    using Bits = std::make_unsigned_t<T>;
    const auto v = static_cast<Bits>(a), w = static_cast<Bits>(b);
    switch (rule) {
      case Combine::add: return static_cast<T>(v + w);
      case Combine::sub: return static_cast<T>(v - w);
      case Combine::mul: return static_cast<T>(v * w);
      case Combine::div: return b == 0 ? 0 : b == -1 ? static_cast<T>(0 - v) : a / b;
      case Combine::max: return b > a ? b : a;
      default: return b < a ? b : a;
    }
  }
}

/// Calls f with an object whose apply(a, b) combines elements.
template <Combine r, class T>
struct Rule {
  static T apply(T a, T b) { return combined<r, T>(a, b); }
};
template <class T, class F>
void with_rule(Combine rule, F f) {
  switch (rule) {
    case Combine::update: return f(Rule<Combine::update, T>{});
    case Combine::add: return f(Rule<Combine::add, T>{});
    case Combine::sub: return f(Rule<Combine::sub, T>{});
    case Combine::mul: return f(Rule<Combine::mul, T>{});
    case Combine::div: return f(Rule<Combine::div, T>{});
    case Combine::max: return f(Rule<Combine::max, T>{});
    case Combine::min: return f(Rule<Combine::min, T>{});
  }
}
/// Calls f with the element type and the rule. Updates alone need only the size of an element.
template <class F>
void with_elements(ir::DType dtype, Combine rule, F f) {
  if (rule != Combine::update) {
    if (dtype == ir::DType::fp32) return with_rule<float>(rule, [&](auto r) { f(float{}, r); });
    return with_rule<int32_t>(rule, [&](auto r) { f(int32_t{}, r); });
  }
  switch (ir::bits(dtype)) {
    case 8: return f(uint8_t{}, Rule<Combine::update, uint8_t>{});
    case 16: return f(uint16_t{}, Rule<Combine::update, uint16_t>{});
    case 32: return f(uint32_t{}, Rule<Combine::update, uint32_t>{});
    default: return f(uint64_t{}, Rule<Combine::update, uint64_t>{});
  }
}

/// Data of `outer` parts, each [size, inner], and columns [first, first + columns) of one of them.
struct Scatter {
  int64_t outer, size, inner, parts;
  bool wraps;

  struct Tile {
    int64_t part, first, columns;
  };
  Tile at(int64_t t) const {
    const int64_t p = t % parts, first = inner * p / parts;
    return {t / parts, first, inner * (p + 1) / parts - first};
  }
  /// Copies the tile unless the result took over the memory of the data.
  template <class T>
  void copy(const T* data, T* y, const Tile& t) const {
    if (data == y) return;
    const int64_t start = t.part * size * inner + t.first;
    if (t.columns == inner)
      std::copy_n(data + start, size * inner, y + start);
    else
      for (int64_t i = 0; i < size; i++) std::copy_n(data + start + i * inner, t.columns, y + start + i * inner);
  }

  /// Slices of data at index vectors, n for each part.
  template <class T, class R>
  void slices(const IndexVectors& vectors, int64_t n, const ir::TensorView& indices, const T* updates, T* y,
              const Tile& t, R rule) const {
    int64_t found[kPositions];
    T* const to = y + t.part * size * inner + t.first;
    for (int64_t begin = 0; begin < n; begin += kPositions) {
      const int64_t count = std::min(kPositions, n - begin);
      vectors.locate(indices, begin, count, wraps, found);
      const T* from = updates + (t.part * n + begin) * inner + t.first;
      if (inner == 1) {
        for (int64_t i = 0; i < count; i++)
          if (found[i] >= 0) to[found[i]] = rule.apply(to[found[i]], from[i]);
        continue;
      }
      for (int64_t i = 0; i < count; i++, from += inner) {
        if (found[i] < 0) continue;
        T* slice = to + found[i];
        for (int64_t k = 0; k < t.columns; k++) slice[k] = rule.apply(slice[k], from[k]);
      }
    }
  }

  /// Elements by their own indices along the axis of `size` elements, n for each column.
  template <class T, class R>
  void elements(const IndexVectors& axis, int64_t n, const ir::TensorView& indices, const T* updates, T* y,
                const Tile& t, R rule) const {
    int64_t found[kPositions];
    T* const to = y + t.part * size * inner + t.first;
    const int64_t rows = inner == 1 ? 1 : n, length = inner == 1 ? n : t.columns;
    for (int64_t row = 0; row < rows; row++)
      for (int64_t begin = 0; begin < length; begin += kPositions) {
        const int64_t count = std::min(kPositions, length - begin);
        const int64_t first = (t.part * n + row) * inner + t.first + begin, step = inner == 1 ? 0 : 1;
        axis.locate(indices, first, count, wraps, found);
        for (int64_t i = 0; i < count; i++) {
          if (found[i] < 0) continue;
          T& element = to[found[i] + (begin + i) * step];
          element = rule.apply(element, updates[first + i]);
        }
      }
  }
};

Match match_scatter(const MatchCall& m) {
  const ir::Shape data = m.call.shape("data"), indices = m.call.shape("indices");
  const ir::DType dtype = m.call.dtype("data");
  const auto indexer = ops::Indexer::of(m.call);
  const auto rule = ops::combine_of(m.call);
  if (!indexer.ok() || !rule.ok()) return Match::no("settings that are not constant");
  const bool known =
      *rule == Combine::update ? has_bytes(dtype) : dtype == ir::DType::fp32 || dtype == ir::DType::int32;
  if (!known) return Match::no(cat("element type ", dtype));
  if (data.count() == 0 || m.call.shape("updates").count() == 0) return Match::no("an empty tensor");
  const std::string_view name = m.call.version().def->name;
  const bool vectors = name == "scatter_nd", elements = name == "scatter_along_axis";
  int axis = 0, depth = 1;
  if (vectors) {
    depth = static_cast<int>(indices[indices.rank() - 1]);
    if (depth == 0) return Match::no("empty index vectors");
  } else {
    const auto a = m.call.integer("axis");
    if (!a.ok()) return Match::no("settings that are not constant");
    axis = static_cast<int>(*a < 0 ? *a + data.rank() : *a);
  }
  Scatter s{data.count(0, axis), data.count(axis, axis + depth), data.count(axis + depth, data.rank()), 1,
            indexer->wraps};
  // Updates of single elements jump between rows, so their columns are divided to stay in the cache. Slices are
  // divided only to give each thread a part.
  constexpr int64_t kColumns = 512, kLeast = 64;
  const int64_t most = std::max<int64_t>(1, s.inner / kLeast);
  s.parts = elements ? std::max<int64_t>(1, s.inner / kColumns) : 1;
  if (s.outer * s.parts < m.threads) s.parts = std::min<int64_t>(most, m.threads);
  IndexVectors positions;
  for (int d = 0; d < depth; d++) positions.add(data[axis + d], data.count(axis + d + 1, data.rank()));
  const int64_t n = elements ? indices[axis] : indices.count() / depth;
  const auto in = static_cast<size_t>(m.call.arg_index("data")), at = static_cast<size_t>(m.call.arg_index("indices")),
             with = static_cast<size_t>(m.call.arg_index("updates"));
  KernelChoice c;
  c.kernel = "cpu.scatter";
  c.in_place = static_cast<int>(in);
  c.tiles = s.outer * s.parts;
  constexpr double kEach = 20;  // floating-point operations in the time of one position
  c.cost = cost_of(m, kEach * static_cast<double>(indices.count()), traffic(m));
  c.run = [=, indexer = *indexer, rule = *rule](const KernelArgs& args) -> Status {
    if (args.begin == 0) MOKA_TRY(indexer.check(*args.call, args.in[at], data, axis, depth));
    with_elements(dtype, rule, [&](auto element, auto apply) {
      using T = decltype(element);
      const T *from = args.in[in].as<T>(), *updates = args.in[with].as<T>();
      T* y = args.out[0].as<T>();
      for (int64_t t = args.begin; t < args.end; t++) {
        const Scatter::Tile tile = s.at(t);
        s.copy(from, y, tile);
        if (elements)
          s.elements(positions, n, args.in[at], updates, y, tile, apply);
        else
          s.slices(positions, n, args.in[at], updates, y, tile, apply);
      }
    });
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_scatter() {
  static const KernelDef defs[] = {
      {.name = "cpu.scatter", .ops = {"scatter", "scatter_nd", "scatter_along_axis"}, .match = match_scatter}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
