// SPDX-License-Identifier: Apache-2.0
#include "plan/min_cut.h"

#include <algorithm>

namespace moka::plan {

int MinCut::node() {
  first_.push_back(-1);
  return static_cast<int>(first_.size()) - 1;
}

void MinCut::add(int from, int to, int64_t capacity) {
  if (capacity <= 0) return;
  auto arc = [&](int a, int b, int64_t c) {
    arcs_.push_back({b, first_[static_cast<size_t>(a)], c});
    first_[static_cast<size_t>(a)] = static_cast<int>(arcs_.size()) - 1;
  };
  arc(from, to, capacity);
  arc(to, from, 0);
}

/// Computes distances from the source until it reaches the sink.
bool MinCut::find_levels() {
  level_.assign(first_.size(), -1);
  std::vector<int> queue = {0};
  level_[0] = 0;
  for (size_t k = 0; k < queue.size(); k++)
    for (int a = first_[static_cast<size_t>(queue[k])]; a >= 0; a = arcs_[static_cast<size_t>(a)].next) {
      const Arc& arc = arcs_[static_cast<size_t>(a)];
      int& level = level_[static_cast<size_t>(arc.to)];
      if (arc.left == 0 || level >= 0) continue;
      level = level_[static_cast<size_t>(queue[k])] + 1;
      queue.push_back(arc.to);
    }
  return level_[1] >= 0;
}

/// Sends as much as possible along one shortest path.
bool MinCut::push_path() {
  path_.clear();
  int node = 0;
  while (node != 1) {
    int& a = at_[static_cast<size_t>(node)];
    while (a >= 0 &&
           (arcs_[static_cast<size_t>(a)].left == 0 ||
            level_[static_cast<size_t>(arcs_[static_cast<size_t>(a)].to)] != level_[static_cast<size_t>(node)] + 1))
      a = arcs_[static_cast<size_t>(a)].next;
    if (a >= 0) {
      path_.push_back(a);
      node = arcs_[static_cast<size_t>(a)].to;
      continue;
    }
    if (node == 0) return false;
    node = arcs_[static_cast<size_t>(path_.back() ^ 1)].to;
    at_[static_cast<size_t>(node)] = arcs_[static_cast<size_t>(path_.back())].next;
    path_.pop_back();
  }
  int64_t fits = kNever;
  for (int a : path_) fits = std::min(fits, arcs_[static_cast<size_t>(a)].left);
  for (int a : path_) {
    arcs_[static_cast<size_t>(a)].left -= fits;
    arcs_[static_cast<size_t>(a ^ 1)].left += fits;
  }
  return true;
}

void MinCut::solve() {
  while (find_levels()) {
    at_ = first_;
    while (push_path()) {
    }
  }
}

}  // namespace moka::plan
