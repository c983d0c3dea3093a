// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "devices/cpu/kernels/family.h"

/// Tree ensembles. Every branch becomes "x < threshold": `<=` uses the next larger number, `>` and `>=` exchange the
/// children, and a branch that first rounds x to float32 uses the lowest double that rounds to its threshold. The
/// children of a node are adjacent, so a step is a comparison and an addition. Walks of several rows, or of several
/// trees for a single row, run at the same time.
namespace moka::devices::cpu {

namespace {

enum Mode : uint8_t { less_equal, less, greater_equal, greater, equal, not_equal, leaf };

/// A node. The `first` of a leaf is the leaf itself, and its threshold is infinite.
template <class T>
struct Node {
  T threshold;
  uint32_t feature;
  uint32_t first;  ///< the child for x < threshold, in bytes from the first node; the other child follows it
};

struct Leaf {
  int32_t begin = 0, end = 0;  ///< range of the leaf's values
};

/// The packed trees, shared by all plans of a model: arrays by node, and the roots. Byte: std::byte where `prepare`
/// fills them, const std::byte afterwards.
template <class T, class Byte = const std::byte>
struct Forest {
  template <class U>
  using Of = std::conditional_t<std::is_const_v<Byte>, const U, U>;
  Of<Node<T>>* nodes;
  Of<double>* value;           ///< used if each leaf has at most one value, of the only output; else null
  Of<Leaf>* leaves;            ///< used otherwise
  Of<uint32_t>* roots;         ///< in bytes from the first node
  Of<int32_t>* depths;         ///< the steps from a tree's root to its lowest leaf
  Of<uint8_t>* missing_first;  ///< whether a NaN goes to `first`
  int64_t trees;

  Forest(Byte* at, int64_t node_count, int64_t tree_count, bool one_value) : trees(tree_count) {
    static_assert(sizeof(double) == sizeof(Leaf));
    nodes = reinterpret_cast<Of<Node<T>>*>(at);
    at += static_cast<size_t>(node_count) * sizeof(Node<T>);
    at += (8 - reinterpret_cast<uintptr_t>(at) % 8) % 8;
    value = one_value ? reinterpret_cast<Of<double>*>(at) : nullptr;
    leaves = one_value ? nullptr : reinterpret_cast<Of<Leaf>*>(at);
    at += static_cast<size_t>(node_count) * sizeof(Leaf);
    roots = reinterpret_cast<Of<uint32_t>*>(at);
    depths = reinterpret_cast<Of<int32_t>*>(roots + tree_count);
    missing_first = reinterpret_cast<Of<uint8_t>*>(depths + tree_count);
  }
  const Node<T>& node(uint32_t at) const {
    return *reinterpret_cast<const Node<T>*>(reinterpret_cast<const std::byte*>(nodes) + at);
  }
  static uint32_t place_of(int64_t node) { return static_cast<uint32_t>(static_cast<size_t>(node) * sizeof(Node<T>)); }
  static size_t node_at(uint32_t place) { return place / sizeof(Node<T>); }
  static size_t bytes(int64_t node_count, int64_t tree_count) {
    return static_cast<size_t>(node_count) * (sizeof(Node<T>) + sizeof(Leaf) + 1) +
           static_cast<size_t>(tree_count) * (sizeof(uint32_t) + sizeof(int32_t)) + 8;
  }
};

constexpr int64_t kWalks = 8;       // walks at the same time
constexpr int64_t kTrees = 12;      // the same for a single row, whose numbers take fewer registers
constexpr int64_t kTreeRows = 256;  // rows per tile; they stay in the L1 cache while the trees are read

/// Finds the leaf of each walk, at most `depth` steps away. Walk i begins at node[i] and reads x + i * step.
template <class T, bool kMissing, int64_t kWalks>
inline void walk(const Forest<T>& f, const T* x, int64_t step, int32_t depth, uint32_t (&node)[kWalks]) {
  constexpr int32_t kUnseen = 6;  // steps between looks whether all walks have ended
  for (int32_t left = depth; left > 0; left -= kUnseen) {
    for (int32_t n = std::min(left, kUnseen); n > 0; n--)
      for (int64_t i = 0; i < kWalks; i++) {
        const Node<T>& at = f.node(node[i]);
        const T v = x[i * step + at.feature];
        bool first = v < at.threshold;
        if (kMissing) first |= v != v && f.missing_first[f.node_at(node[i])] != 0;
        node[i] = at.first + static_cast<uint32_t>(!first) * sizeof(Node<T>);
      }
    bool ended = left > kUnseen;
    for (int64_t i = 0; i < kWalks && ended; i++) ended = f.node(node[i]).first == node[i];
    if (ended) break;
  }
}

struct Arguments {
  const int32_t* leaf_index;
  const double* leaf_value;
  const double* base;
  int64_t outputs, features;
};

template <class T>
void add(const Forest<T>& f, uint32_t place, const Arguments& a, double* y) {
  const size_t node = f.node_at(place);
  if (f.value != nullptr) {
    y[0] += f.value[node];
    return;
  }
  const Leaf& l = f.leaves[node];
  for (int32_t i = l.begin; i < l.end; i++) y[a.leaf_index[i]] += a.leaf_value[i];
}

template <class T, bool kMissing>
void predict(const Forest<T>& f, const T* x, int64_t rows, const Arguments& a, double* y) {
  for (int64_t r = 0; r < rows; r++) std::copy_n(a.base, a.outputs, y + r * a.outputs);
  const int64_t whole = rows / kWalks * kWalks;
  if (whole > 0)
    for (int64_t t = 0; t < f.trees; t++)
      for (int64_t r = 0; r < whole; r += kWalks) {
        uint32_t node[kWalks];
        std::fill_n(node, kWalks, f.roots[t]);
        walk<T, kMissing, kWalks>(f, x + r * a.features, a.features, f.depths[t], node);
        for (int64_t i = 0; i < kWalks; i++) add(f, node[i], a, y + (r + i) * a.outputs);
      }
  for (int64_t r = whole; r < rows; r++)
    for (int64_t t = 0; t < f.trees; t += kTrees) {
      const int64_t count = std::min(kTrees, f.trees - t);
      uint32_t node[kTrees];
      int32_t depth = 0;
      for (int64_t i = 0; i < kTrees; i++) node[i] = f.roots[t + std::min(i, count - 1)];
      for (int64_t i = 0; i < count; i++) depth = std::max(depth, f.depths[t + i]);
      walk<T, kMissing, kTrees>(f, x + r * a.features, 0, depth, node);
      for (int64_t i = 0; i < count; i++) add(f, node[i], a, y + r * a.outputs);
    }
}

/// x as T. Infinities become the greatest finite numbers, which are on the same side of every threshold and below that
/// of a leaf. Returns whether any element is NaN.
template <class T>
bool narrow(const double* x, int64_t count, T* to) {
  constexpr T most = std::numeric_limits<T>::max();
  bool missing = false;
  for (int64_t i = 0; i < count; i++) {
    const T v = static_cast<T>(x[i]);
    missing |= v != v;
    to[i] = v > most ? most : v < -most ? -most : v;
  }
  return missing;
}

/// The lowest double that rounds to at least `t`.
double rounds_up_to(float t) {
  const float below = std::nextafter(t, -std::numeric_limits<float>::infinity());
  const double middle = (static_cast<double>(below) + static_cast<double>(t)) / 2;
  return static_cast<float>(middle) >= t ? middle : std::nextafter(middle, std::numeric_limits<double>::infinity());
}

/// The operation's constants.
struct Source {
  const uint8_t *mode, *missing_true, *single;
  const int32_t *feature, *on_true, *on_false;
  const double *threshold, *leaf_value;
  std::span<const int32_t> roots;
  int64_t nodes;
};

constexpr std::string_view kPrepared[] = {"mode",    "missing_true", "single",    "feature",
                                          "on_true", "on_false",     "threshold", "roots"};

/// `view(name)` returns the constant of that name.
template <class View>
Source source_of(const View& view) {
  const ir::TensorView &mode = view("mode"), &roots = view("roots");
  return {mode.template as<uint8_t>(),
          view("missing_true").template as<uint8_t>(),
          view("single").template as<uint8_t>(),
          view("feature").template as<int32_t>(),
          view("on_true").template as<int32_t>(),
          view("on_false").template as<int32_t>(),
          view("threshold").template as<double>(),
          view("leaf_value").template as<double>(),
          {roots.template as<int32_t>(), static_cast<size_t>(roots.count())},
          mode.count()};
}

/// The threshold of branch `i` as T, for "x < threshold"; infinite if it has none.
template <class T>
T threshold_of(const Source& s, int64_t i) {
  const bool inclusive = s.mode[i] == less_equal || s.mode[i] == greater;
  if constexpr (std::is_same_v<T, double>) {
    if (s.single[i] != 0) {
      const auto t = static_cast<float>(s.threshold[i]);
      return rounds_up_to(inclusive ? std::nextafter(t, std::numeric_limits<float>::infinity()) : t);
    }
  }
  const T t = static_cast<T>(s.threshold[i]);
  return inclusive ? std::nextafter(t, std::numeric_limits<T>::infinity()) : t;
}

/// Lays out one tree, level by level, starting at node `end`. Returns its depth.
template <class T>
int32_t append_tree(const Source& s, int32_t root, int64_t& end, Forest<T, std::byte>& f) {
  struct Pending {
    int32_t from;
    int64_t to;
  };
  std::vector<Pending> level{{root, end++}}, next;
  int32_t depth = -1;
  for (; !level.empty(); level.swap(next), next.clear(), depth++)
    for (const auto [from, to] : level) {
      if (s.mode[from] == leaf) {
        f.nodes[to] = {std::numeric_limits<T>::infinity(), 0, f.place_of(to)};
        f.missing_first[to] = 1;
        const Leaf l{s.on_true[from], s.on_false[from]};
        if (f.value != nullptr)
          f.value[to] = l.end > l.begin ? s.leaf_value[l.begin] : 0;
        else
          f.leaves[to] = l;
        continue;
      }
      const bool exchanged = s.mode[from] == greater || s.mode[from] == greater_equal;
      f.nodes[to] = {threshold_of<T>(s, from), static_cast<uint32_t>(s.feature[from]), f.place_of(end)};
      f.missing_first[to] = static_cast<uint8_t>((s.missing_true[from] != 0) != exchanged);
      next.push_back({exchanged ? s.on_false[from] : s.on_true[from], end});
      next.push_back({exchanged ? s.on_true[from] : s.on_false[from], end + 1});
      end += 2;
    }
  return depth;
}

/// Why the branches cannot become comparisons with finite thresholds; empty: they can.
std::string refusal_of(const Source& s) {
  constexpr double most = std::numeric_limits<float>::max();
  for (int64_t i = 0; i < s.nodes; i++) {
    if (s.mode[i] == leaf) continue;
    if (s.mode[i] == equal || s.mode[i] == not_equal) return "branches that test for equality";
    const double bound = s.single[i] != 0 ? most : std::numeric_limits<double>::max();
    if (!(std::abs(s.threshold[i]) < bound)) return "thresholds that are not finite";
  }
  return {};
}

/// The number of nodes in all trees; nullopt when a node belongs to two trees, which no importer creates.
std::optional<int64_t> nodes_of_forest(const Source& s) {
  std::vector<uint8_t> seen(static_cast<size_t>(s.nodes), 0);
  int64_t count = 0;
  const auto once = [&](int32_t i) { return ++count, std::exchange(seen[static_cast<size_t>(i)], 1) == 0; };
  for (const int32_t r : s.roots)
    if (!once(r)) return std::nullopt;
  for (int64_t i = 0; i < s.nodes; i++)
    if (seen[static_cast<size_t>(i)] != 0 && s.mode[i] != leaf && (!once(s.on_true[i]) || !once(s.on_false[i])))
      return std::nullopt;
  return count;
}

/// The number of rows and the elements per row.
struct Table {
  int64_t rows, features, outputs;
};

template <class T>
void use(const MatchCall& m, const Source& s, const Table& table, int64_t nodes, KernelChoice& c) {
  bool one_value = table.outputs == 1;
  for (int64_t i = 0; i < s.nodes; i++) one_value &= s.mode[i] != leaf || s.on_false[i] - s.on_true[i] <= 1;
  const auto trees = static_cast<int64_t>(s.roots.size());
  std::vector<std::pair<std::string_view, int>> at;
  for (std::string_view name : {"mode", "missing_true", "single", "feature", "on_true", "on_false", "threshold",
                                "roots", "leaf_value", "leaf_index", "base", "x"})
    at.emplace_back(name, m.call.arg_index(name));
  const auto index_of = [&](std::string_view name) {
    return std::find_if(at.begin(), at.end(), [&](const auto& a) { return a.first == name; })->second;
  };
  c.in_prepare_only.resize(m.call.all_args().size());
  for (std::string_view name : kPrepared) c.in_prepare_only[static_cast<size_t>(index_of(name))] = true;
  auto packed = std::make_shared<std::shared_ptr<const std::byte>>();
  c.prepare = [packed, at, nodes, trees, one_value](kernel::PrepareContext& context) -> Status {
    std::vector<std::pair<std::string_view, ir::TensorView>> values;
    for (const auto& [name, index] : at)
      if (name != "x") values.emplace_back(name, MOKA_TRY(context.constant(index)));
    const Source source = source_of([&](std::string_view name) -> const ir::TensorView& {
      return std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; })->second;
    });
    const int threshold =
        std::find_if(at.begin(), at.end(), [](const auto& a) { return a.first == "threshold"; })->second;
    std::vector<ir::TensorView> parts;
    for (const auto& [name, value] : values) parts.push_back(value);
    const std::string key =
        cat("trees by place", sizeof(T), one_value ? " of single values " : " ", content_key(parts));
    *packed = MOKA_TRY(context.pack(threshold, key, Forest<T>::bytes(nodes, trees),
                                    [&](const ir::TensorView&, std::byte* to) -> Status {
                                      Forest<T, std::byte> f(to, nodes, trees, one_value);
                                      int64_t end = 0;
                                      for (int64_t t = 0; t < trees; t++) {
                                        f.roots[t] = f.place_of(end);
                                        f.depths[t] = append_tree(source, source.roots[static_cast<size_t>(t)], end, f);
                                      }
                                      return {};
                                    }));
    return {};
  };
  c.tiles = (table.rows + kTreeRows - 1) / kTreeRows;
  c.thread_scratch = static_cast<size_t>(std::min(table.rows, kTreeRows) * table.features) * sizeof(T);
  c.run = [packed, table, nodes, trees, one_value, x_at = static_cast<size_t>(index_of("x")),
           base_at = static_cast<size_t>(index_of("base")), index_at = static_cast<size_t>(index_of("leaf_index")),
           value_at = static_cast<size_t>(index_of("leaf_value"))](const KernelArgs& args) -> Status {
    const Forest<T> f(packed->get(), nodes, trees, one_value);
    const Arguments a{args.in[index_at].as<int32_t>(), args.in[value_at].as<double>(), args.in[base_at].as<double>(),
                      table.outputs, table.features};
    T* x = args.own<T>();
    for (int64_t tile = args.begin; tile < args.end; tile++) {
      const int64_t first = tile * kTreeRows, count = std::min(kTreeRows, table.rows - first);
      double* y = args.out[0].as<double>() + first * table.outputs;
      if (narrow(args.in[x_at].as<double>() + first * table.features, count * table.features, x))
        predict<T, true>(f, x, count, a, y);
      else
        predict<T, false>(f, x, count, a, y);
    }
    return {};
  };
}

Match match_trees(const MatchCall& m) {
  const Source s = source_of([&](std::string_view name) -> const ir::TensorView& { return *m.call.value(name); });
  const int64_t outputs = m.call.value("base")->count(), all = m.outputs[0].shape().count();
  const int64_t x = m.call.shape("x").count();
  if (all == 0 || x == 0) return Match::no("an empty array");
  const Table table{all / outputs, x / (all / outputs), outputs};
  if (std::string why = refusal_of(s); !why.empty()) return Match::no(why);
  const std::optional<int64_t> nodes = nodes_of_forest(s);
  if (!nodes) return Match::no("trees that share nodes");
  if (*nodes > std::numeric_limits<uint32_t>::max() / static_cast<int64_t>(sizeof(Node<double>)))
    return Match::no("too many nodes");
  KernelChoice c;
  c.kernel = "cpu.ml.trees";
  const double walks = static_cast<double>(s.roots.size()) * static_cast<double>(table.rows);
  c.cost = cost_of(m, 32 * walks, 8.0 * static_cast<double>(all));
  bool single = true;
  for (int64_t i = 0; i < s.nodes; i++) single &= s.mode[i] == leaf || s.single[i] != 0;
  if (single)
    use<float>(m, s, table, *nodes, c);
  else
    use<double>(m, s, table, *nodes, c);
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_ml_trees() {
  static const KernelDef defs[] = {{.name = "cpu.ml.trees", .ops = {"ml_tree_ensemble"}, .match = match_trees}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
