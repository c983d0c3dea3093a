// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>

#include "view/graph.h"

namespace moka::cli {
namespace {

constexpr size_t kLeastPeriod = 3;   ///< operations in a block
constexpr size_t kMostPeriods = 32;  ///< lengths of blocks that are tried
constexpr size_t kRunGroup = 4;      ///< this many equal blocks become one group
constexpr int kMostDepth = 3;        ///< blocks inside blocks

/// The users of each node's values.
using Users = std::vector<std::vector<int32_t>>;

/// Equal blocks: `count` times `period` members from `start` on.
struct Stretch {
  size_t start = 0, period = 0, count = 0;
  size_t covered() const { return period * count; }
  size_t end() const { return start + covered(); }
};

class Finder {
 public:
  Finder(const Graph& graph, const Users& users, const std::vector<int32_t>& members) : size_(members.size()) {
    std::unordered_map<std::string, uint32_t> numbers;
    std::unordered_map<int32_t, size_t> position;
    Scopes before;
    for (size_t i = 0; i < size_; ++i) {
      const GraphNode& node = graph.nodes[static_cast<size_t>(members[i])];
      std::string text = node.type + "\n" + std::to_string(node.weights.size());
      for (const auto& [parameter, names] : node.inputs) text += "\n" + std::to_string(names.size());
      for (const auto& [name, type] : node.outputs) text += "\n" + type;
      // Inputs and outputs of the graph are never part of a block.
      if (node.kind != NodeKind::operation) text = "\n" + std::to_string(i);
      signatures_.push_back(numbers.emplace(std::move(text), numbers.size()).first->second);
      position[members[i]] = i;
      Scopes scopes(node.name);
      shared_.push_back(shared_scopes(before, scopes));
      before = std::move(scopes);
    }
    shared_.push_back(0);
    // The values that live across the boundary in front of each member.
    std::vector<int64_t> change(size_ + 2);
    for (size_t i = 0; i < size_; ++i) {
      size_t last = i;
      for (const int32_t user : users[static_cast<size_t>(members[i])])
        if (const auto to = position.find(user); to != position.end()) last = std::max(last, to->second);
      ++change[i + 1];
      --change[last + 1];
    }
    int64_t live = 0;
    for (size_t i = 0; i <= size_; ++i) crossing_.push_back(live += change[i]);
  }

  /// Runs within [begin, end) that do not overlap, in order.
  std::vector<Stretch> runs(size_t begin, size_t end, size_t largest_period) const {
    std::vector<Stretch> candidates;
    for (const size_t period : periods(begin, end, largest_period)) {
      for (size_t i = begin; i + period < end;) {
        size_t length = 0;
        while (i + length + period < end && signatures_[i + length] == signatures_[i + length + period]) ++length;
        if (length >= period) candidates.push_back(aligned(i, length + period, period));
        i += length + 1;
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const Stretch& a, const Stretch& b) {
      return a.covered() != b.covered() ? a.covered() > b.covered() : a.period < b.period;
    });
    std::map<size_t, Stretch> taken;
    for (const Stretch& run : candidates) {
      if (run.count < 2) continue;
      const auto next = taken.lower_bound(run.start);
      if (next != taken.end() && next->second.start < run.end()) continue;
      if (next != taken.begin() && std::prev(next)->second.end() > run.start) continue;
      taken.emplace(run.start, run);
    }
    std::vector<Stretch> out;
    for (const auto& [start, run] : taken) out.push_back(run);
    return out;
  }

 private:
  /// The distances at which members recur, sorted by the number of members that they cover.
  std::vector<size_t> periods(size_t begin, size_t end, size_t largest) const {
    std::unordered_map<uint32_t, size_t> last;
    std::unordered_map<size_t, size_t> counts;
    for (size_t i = begin; i < end; ++i) {
      const auto [it, is_first] = last.emplace(signatures_[i], i);
      if (is_first) continue;
      const size_t distance = i - it->second;
      if (distance >= kLeastPeriod && distance <= largest) ++counts[distance];
      it->second = i;
    }
    std::vector<std::pair<size_t, size_t>> ordered;
    for (const auto& [distance, count] : counts) ordered.emplace_back(count * distance, distance);
    std::sort(ordered.begin(), ordered.end(), std::greater<>());
    if (ordered.size() > kMostPeriods) ordered.resize(kMostPeriods);
    std::vector<size_t> out;
    for (const auto& [covered, distance] : ordered) out.push_back(distance);
    return out;
  }

  /// Chooses where the blocks in the `length` members from `start` on begin: where the fewest values connect two
  /// blocks, and among these places where blocks share the fewest scopes.
  Stretch aligned(size_t start, size_t length, size_t period) const {
    const size_t most = length / period;
    Stretch best{start, period, most};
    const auto connection = [&](size_t i) { return std::pair(crossing_[i], shared_[i]); };
    auto least = connection(start);
    for (size_t shift = 1; shift < period && (length - shift) / period + 1 >= most; ++shift) {
      const size_t count = (length - shift) / period;
      if (count < 2 || connection(start + shift) >= least) continue;
      least = connection(start + shift);
      best = {start + shift, period, count};
    }
    return best;
  }

  size_t size_;
  std::vector<uint32_t> signatures_;
  std::vector<int64_t> crossing_;
  std::vector<size_t> shared_;  ///< number of scopes that each member has in common with the one before it
};

/// The common prefix of the names in a block, up to a separator: "encoder/layer_3".
std::string common_name(const Graph& graph, const std::vector<int32_t>& members) {
  std::string prefix;
  bool is_first = true;
  for (const int32_t id : members) {
    const std::string& name = graph.nodes[static_cast<size_t>(id)].name;
    if (is_first) prefix = name;
    is_first = false;
    prefix.resize(static_cast<size_t>(std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end()).first -
                                      prefix.begin()));
  }
  const size_t cut = prefix.find_last_of("/._");
  return cut == std::string::npos || cut < 4 ? std::string() : prefix.substr(0, cut);
}

class Grouper {
 public:
  explicit Grouper(Graph& graph) : graph_(graph), users_(graph.nodes.size()) {
    for (const GraphEdge& e : graph.edges) users_[static_cast<size_t>(e.from)].push_back(e.to);
  }

  void group(int32_t parent, int depth) {
    const std::vector<int32_t> members = at(parent).members;
    if (members.size() < 2 * kLeastPeriod) return;
    const Finder finder(graph_, users_, members);
    const std::vector<Stretch> runs = finder.runs(0, members.size(), members.size() / 2);
    if (runs.empty()) return;
    std::vector<int32_t> kept;
    size_t next = 0;
    for (const Stretch& run : runs) {
      kept.insert(kept.end(), members.begin() + static_cast<std::ptrdiff_t>(next),
                  members.begin() + static_cast<std::ptrdiff_t>(run.start));
      next = run.end();
      int32_t around = parent;
      if (run.count >= kRunGroup) {
        around = add(parent, NodeKind::repeat, "");
        kept.push_back(around);
      }
      std::vector<int32_t> blocks;
      for (size_t b = 0; b < run.count; ++b) {
        const auto from = members.begin() + static_cast<std::ptrdiff_t>(run.start + b * run.period);
        const std::vector<int32_t> inside(from, from + static_cast<std::ptrdiff_t>(run.period));
        std::string name = common_name(graph_, inside);
        if (name.empty()) name = "block " + std::to_string(b + 1);
        const int32_t block = add(around, NodeKind::block, std::move(name));
        at(block).type = "block";
        for (const int32_t id : inside) at(id).parent = block;
        at(block).members = inside;
        blocks.push_back(block);
      }
      if (around == parent) {
        kept.insert(kept.end(), blocks.begin(), blocks.end());
      } else {
        at(around).type = "repeat";
        at(around).name = std::to_string(run.count) + " equal blocks";
        at(around).members = blocks;
      }
      if (depth < kMostDepth && run.period >= 2 * kLeastPeriod)
        for (const int32_t block : blocks) group(block, depth + 1);
    }
    kept.insert(kept.end(), members.begin() + static_cast<std::ptrdiff_t>(next), members.end());
    at(parent).members = std::move(kept);
  }

 private:
  GraphNode& at(int32_t id) { return graph_.nodes[static_cast<size_t>(id)]; }
  int32_t add(int32_t parent, NodeKind kind, std::string name) {
    graph_.nodes.push_back({.kind = kind, .name = std::move(name), .parent = parent});
    return static_cast<int32_t>(graph_.nodes.size() - 1);
  }

  Graph& graph_;
  Users users_;
};

}  // namespace

void group_repeats(Graph& graph) {
  Grouper grouper(graph);
  const size_t count = graph.nodes.size();
  for (size_t i = 0; i < count; ++i) grouper.group(static_cast<int32_t>(i), 0);
}

}  // namespace moka::cli
