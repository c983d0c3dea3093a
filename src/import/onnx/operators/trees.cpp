// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "import/onnx/ensemble.h"

namespace moka::import::onnx {
namespace {

/// The nodes of all trees, followed by the leaves.
Ensemble trees_of(const Node& n) {
  Ensemble t;
  t.targets = n.integer_or("n_targets", 1);
  t.roots = n.integers_or("tree_roots");
  t.features = n.integers_or("nodes_featureids");
  t.splits = numbers_of(n, "nodes_splits");
  const std::vector<int64_t> leaf_targets = n.integers_or("leaf_targetids");
  const std::vector<double> leaf_weights = numbers_of(n, "leaf_weights");
  const size_t nodes = t.features.size(), leaves = leaf_targets.size();
  if (leaves == 0 || leaf_weights.size() != leaves || t.roots.empty() || t.targets < 1)
    n.malformed("leaves, roots or targets are missing");
  for (const double m : numbers_of(n, "nodes_modes")) t.modes.push_back(static_cast<int64_t>(m));
  const auto follow = [&](std::string_view ids, std::string_view is_leaf) {
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
  t.then = follow("nodes_truenodeids", "nodes_trueleafs");
  t.otherwise = follow("nodes_falsenodeids", "nodes_falseleafs");
  if (t.splits.size() != nodes || t.modes.size() != nodes) n.malformed("nodes_splits or nodes_modes of another number");
  t.missing = n.integers_or("nodes_missing_value_tracks_true", std::vector<int64_t>(nodes, 0));
  if (t.missing.size() != nodes) n.malformed(cat(t.missing.size(), " nodes_missing_value_tracks_true of ", nodes));
  t.members.resize(nodes + leaves);
  const std::vector<double> values = numbers_of(n, "membership_values");
  size_t at = 0;
  for (size_t i = 0; i < nodes; ++i) {
    if (t.modes[i] < Ensemble::less_equal || t.modes[i] > Ensemble::member)
      n.malformed(cat("a node of mode ", t.modes[i]));
    if (t.modes[i] != Ensemble::member) continue;
    while (at < values.size() && !std::isnan(values[at])) t.members[i].push_back(values[at++]);
    ++at;  // NaN ends a set
  }
  for (const int64_t r : t.roots)
    if (r < 0 || r >= static_cast<int64_t>(nodes)) n.malformed(cat("a root ", r, " of ", nodes, " nodes"));
  t.missing.resize(nodes + leaves, 0);
  constexpr size_t most = size_t{1} << 26;
  if (nodes + leaves > most / static_cast<size_t>(t.targets))
    n.unsupported(cat(nodes + leaves, " nodes for ", t.targets, " targets"));
  t.weights.resize((nodes + leaves) * static_cast<size_t>(t.targets), 0);
  for (size_t i = 0; i < leaves; ++i) {
    const int64_t target = leaf_targets[i];
    if (target < 0 || target >= t.targets) n.malformed(cat("a leaf of target ", target, " of ", t.targets));
    t.weights[(nodes + i) * static_cast<size_t>(t.targets) + static_cast<size_t>(target)] = leaf_weights[i];
    t.features.push_back(0), t.modes.push_back(Ensemble::less_equal), t.splits.push_back(0);
    t.then.push_back(static_cast<int64_t>(nodes + i)), t.otherwise.push_back(static_cast<int64_t>(nodes + i));
  }
  return t;
}

void tree_ensemble(Node& n) {
  const Ensemble trees = trees_of(n);
  Value* scores = scores_of_trees(n, n.in(0), trees, n.type(0) == DataType::float32);
  const int64_t rule = n.integer_or("aggregate_function", 1), transform = n.integer_or("post_transform", 0);
  static constexpr std::string_view rules[] = {"reduce_mean", "reduce_sum", "reduce_min", "reduce_max"};
  if (rule < 0 || rule > 3) n.malformed(cat("aggregate_function ", rule));
  if (rule > 1 && trees.targets > 1) n.unsupported("the minimum or maximum of trees with several targets");
  static constexpr const char* transforms[] = {"NONE", "SOFTMAX", "LOGISTIC"};
  if (transform < 0 || transform > 2) n.unsupported(cat("post_transform ", transform));
  n.set(0, transformed_scores(n, n.reduce(rules[rule], scores, {1}, false), transforms[transform]));
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
