#include <algorithm>
#include <cmath>
#include <limits>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

enum Mode { less_equal, less, greater_equal, greater, equal, not_equal, member };

/// The nodes of all trees, followed by the leaves, which lead to themselves.
struct Trees {
  std::vector<int64_t> features, modes, then, otherwise;
  std::vector<int64_t> missing;  ///< whether NaN leads to `then`, as 0 or 1
  std::vector<double> splits;
  std::vector<std::vector<double>> members;
  int64_t depth = 0;
};

std::vector<double> numbers_of(const Node& n, std::string_view name) {
  const Attribute* a = n.attribute(name);
  if (a == nullptr || a->tensors.empty()) return {};
  const Tensor t = tensor_of(a->tensors[0], n.scope.context.file);
  std::vector<double> out(static_cast<size_t>(t.count()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = ir::is_float(t.dtype()) ? ir::load_f64(t.view(), static_cast<int64_t>(i))
                                     : static_cast<double>(ir::load_i64(t.view(), static_cast<int64_t>(i)));
  return out;
}

/// The steps from each node to the farthest leaf. Refuses nodes that lead back to themselves.
int64_t depth_of(const Node& n, const Trees& trees, size_t nodes, std::vector<int64_t> roots) {
  int64_t depth = 0;
  while (!roots.empty()) {
    std::vector<int64_t> next;
    for (const int64_t at : roots) {
      if (at >= static_cast<int64_t>(nodes)) continue;
      next.push_back(trees.then[static_cast<size_t>(at)]);
      next.push_back(trees.otherwise[static_cast<size_t>(at)]);
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    roots = std::move(next);
    if (!roots.empty() && ++depth > static_cast<int64_t>(nodes)) n.malformed("a tree whose nodes form a circle");
  }
  return depth;
}

Trees trees_of(const Node& n, size_t leaves) {
  Trees t;
  t.features = n.integers_or("nodes_featureids");
  const size_t nodes = t.features.size();
  t.splits = numbers_of(n, "nodes_splits");
  for (const double m : numbers_of(n, "nodes_modes")) t.modes.push_back(static_cast<int64_t>(m));
  const auto targets = [&](std::string_view ids, std::string_view is_leaf) {
    std::vector<int64_t> at = n.integers_or(ids);
    const std::vector<int64_t> leaf = n.integers_or(is_leaf);
    if (at.size() != nodes || leaf.size() != nodes) n.malformed(cat(ids, " of another number of nodes"));
    for (size_t i = 0; i < nodes; ++i) {
      const auto limit = static_cast<int64_t>(leaf[i] != 0 ? leaves : nodes);
      if (at[i] < 0 || at[i] >= limit) n.malformed(cat(ids, ": ", at[i]));
      if (leaf[i] != 0) at[i] += static_cast<int64_t>(nodes);
    }
    return at;
  };
  t.then = targets("nodes_truenodeids", "nodes_trueleafs");
  t.otherwise = targets("nodes_falsenodeids", "nodes_falseleafs");
  if (t.splits.size() != nodes || t.modes.size() != nodes) n.malformed("nodes_splits or nodes_modes of another number");
  t.missing = n.integers_or("nodes_missing_value_tracks_true", std::vector<int64_t>(nodes, 0));
  if (t.missing.size() != nodes) n.malformed(cat(t.missing.size(), " nodes_missing_value_tracks_true of ", nodes));
  t.members.resize(nodes + leaves);
  const std::vector<double> values = numbers_of(n, "membership_values");
  size_t at = 0;
  for (size_t i = 0; i < nodes; ++i) {
    if (t.modes[i] < less_equal || t.modes[i] > member) n.malformed(cat("a node of mode ", t.modes[i]));
    if (t.modes[i] != member) continue;
    while (at < values.size() && !std::isnan(values[at])) t.members[i].push_back(values[at++]);
    ++at;  // NaN ends a set
  }
  const std::vector<int64_t> roots = n.integers_or("tree_roots");
  for (const int64_t r : roots)
    if (r < 0 || r >= static_cast<int64_t>(nodes)) n.malformed(cat("a root ", r, " of ", nodes, " nodes"));
  t.depth = depth_of(n, t, nodes, roots);
  t.missing.resize(nodes + leaves, 0);
  for (size_t i = 0; i < leaves; ++i) {
    t.features.push_back(0), t.modes.push_back(less_equal), t.splits.push_back(0);
    t.then.push_back(static_cast<int64_t>(nodes + i)), t.otherwise.push_back(static_cast<int64_t>(nodes + i));
  }
  return t;
}

Tensor table(DType type, const Shape& shape, const std::vector<double>& values) {
  Tensor t = need(Tensor::zeros(type, shape));
  for (size_t i = 0; i < values.size(); ++i) ir::store_f64(t.view(), static_cast<int64_t>(i), values[i]);
  return t;
}

/// All rows go down all trees at once, one level after the other.
void tree_ensemble(Node& n) {
  Value* x = n.in(0);
  const DType type = x->type.dtype();
  const Shape s = n.known_shape(x, "TreeEnsemble");
  const std::vector<int64_t> leaf_targets = n.integers_or("leaf_targetids"), roots = n.integers_or("tree_roots");
  const std::vector<double> leaf_weights = numbers_of(n, "leaf_weights");
  const int64_t targets = n.integer_or("n_targets", 1);
  const size_t leaves = leaf_targets.size();
  if (s.rank() != 2 || leaves == 0 || leaf_weights.size() != leaves || roots.empty() || targets < 1)
    n.malformed("leaves, roots or targets are missing");
  const Trees trees = trees_of(n, leaves);
  constexpr int64_t deepest = 256;
  if (trees.depth > deepest) n.unsupported(cat("a tree of depth ", trees.depth, ": expected at most ", deepest));
  const auto all = static_cast<int64_t>(trees.features.size());
  constexpr int64_t most = int64_t{1} << 26;
  if (all > most / targets) n.unsupported(cat(all, " nodes for ", targets, " targets"));
  for (const int64_t f : trees.features)
    if (f < 0 || f >= s[1]) n.malformed(cat("feature ", f, " of ", s[1]));
  const auto look_up = [&](Value* from, Value* at) {
    return n.op("gather", {{"x", from}, {"indices", at}, {"axis", 0}});
  };
  Value *features = n.integers_constant(trees.features), *modes = n.integers_constant(trees.modes),
        *then = n.integers_constant(trees.then), *otherwise = n.integers_constant(trees.otherwise),
        *missing = n.integers_constant(trees.missing), *splits = n.constant(table(type, Shape{all}, trees.splits));
  size_t largest = 0;
  for (const auto& set : trees.members) largest = std::max(largest, set.size());
  if (static_cast<int64_t>(largest) > most / all) n.unsupported(cat("sets of ", largest, " members"));
  std::vector<double> members;
  for (auto set : trees.members) {
    set.resize(largest, std::numeric_limits<double>::quiet_NaN());
    members.insert(members.end(), set.begin(), set.end());
  }
  Value* sets = largest == 0 ? nullptr : n.constant(table(type, Shape{all, static_cast<int64_t>(largest)}, members));
  static constexpr std::string_view operations[] = {"less_equal", "less",  "greater_equal",
                                                    "greater",    "equal", "not_equal"};
  Value* at = n.broadcast(n.integers_constant(roots), {s[0], static_cast<int64_t>(roots.size())});
  for (int64_t level = 0; level < trees.depth; ++level) {
    Value* v = n.op("gather_along_axis", {{"x", x}, {"indices", look_up(features, at)}, {"axis", 1}});
    Value *split = look_up(splits, at), *mode = look_up(modes, at), *holds = nullptr;
    for (int64_t m = less_equal; m <= member; ++m) {
      if (std::find(trees.modes.begin(), trees.modes.end(), m) == trees.modes.end()) continue;
      Value* test = nullptr;
      if (m != member) {
        test = n.binary(operations[static_cast<size_t>(m)], v, split);
      } else if (sets != nullptr) {
        Value* matches = n.binary("equal", n.expand_dims(v, {2}), look_up(sets, at));
        test = n.cast(n.reduce("reduce_max", n.cast(matches, DType::int32), {2}, false), DType::boolean);
      } else {
        continue;
      }
      test = n.binary("logical_and", test, n.binary("equal", mode, n.scalar(static_cast<double>(m), mode)));
      holds = holds == nullptr ? test : n.binary("logical_or", holds, test);
    }
    Value* follows = n.binary("not_equal", look_up(missing, at), n.scalar(0, missing));
    Value* is_number = n.binary("equal", v, v);
    holds = n.binary("logical_or", n.binary("logical_and", is_number, holds),
                     n.binary("logical_and", n.unary("logical_not", is_number), follows));
    at = n.select(holds, look_up(then, at), look_up(otherwise, at));
  }
  const int64_t rule = n.integer_or("aggregate_function", 1), transform = n.integer_or("post_transform", 0);
  std::vector<double> weights(static_cast<size_t>(all * targets), 0);
  for (size_t i = 0; i < leaves; ++i) {
    const int64_t target = leaf_targets[i];
    if (target < 0 || target >= targets) n.malformed(cat("a leaf of target ", target, " of ", targets));
    const int64_t row = all - static_cast<int64_t>(leaves) + static_cast<int64_t>(i);
    weights[static_cast<size_t>(row * targets + target)] = leaf_weights[i];
  }
  Value* scores = look_up(n.constant(table(type, Shape{all, targets}, weights)), at);
  static constexpr std::string_view rules[] = {"reduce_mean", "reduce_sum", "reduce_min", "reduce_max"};
  if (rule < 0 || rule > 3) n.malformed(cat("aggregate_function ", rule));
  if (rule > 1 && targets > 1) n.unsupported("the minimum or maximum of trees with several targets");
  Value* out = n.reduce(rules[rule], scores, {1}, false);
  if (transform == 1) out = n.op("softmax", {{"x", out}, {"axis", 1}});
  if (transform == 2) out = n.unary("sigmoid", out);
  if (transform < 0 || transform > 2) n.unsupported(cat("post_transform ", transform));
  n.set(0, out);
}

void binarizer(Node& n) {
  Value* x = n.in(0);
  Value* above = n.binary("greater", x, n.scalar(static_cast<double>(n.number_or("threshold", 0)), x));
  n.set(0, n.cast(above, x->type.dtype()));
}

constexpr OperatorImport kTreesOperators[] = {
    {"TreeEnsemble", tree_ensemble, "ai.onnx.ml"},
    {"Binarizer", binarizer, "ai.onnx.ml"},
};

}  // namespace

std::span<const OperatorImport> operators_trees() { return kTreesOperators; }

}  // namespace moka::import::onnx
