// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace moka::plan {

/// The cheapest way to separate a source from a sink (Dinic's algorithm).
///
///     MinCut cut;
///     const int a = cut.node();
///     cut.from_source(a, 3);
///     cut.to_sink(a, 5);
///     cut.solve();              // a stays with the sink
class MinCut {
 public:
  static constexpr int64_t kNever = INT64_MAX / 4;

  int node();
  void from_source(int to, int64_t capacity) { add(0, to, capacity); }
  void to_sink(int from, int64_t capacity) { add(from, 1, capacity); }
  /// The cut pays `capacity` when `from` is with the source and `to` with the sink.
  void add(int from, int to, int64_t capacity);
  void solve();
  /// Whether the node is on the source's side. Valid after solve.
  bool with_source(int node) const { return level_[static_cast<size_t>(node)] >= 0; }

 private:
  struct Arc {
    int to, next;
    int64_t left;
  };
  bool find_levels();
  bool push_path();

  std::vector<Arc> arcs_;  ///< arcs 2k and 2k + 1 are opposite
  std::vector<int> first_ = {-1, -1}, level_, at_, path_;
};

}  // namespace moka::plan
