// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "import/onnx/ensemble.h"
#include "import/onnx/label_lists.h"

namespace moka::import::onnx {
namespace {

/// The nodes by the numbers of their tree and in it.
using Places = std::map<std::pair<int64_t, int64_t>, int64_t>;

int64_t test_of(const Node& n, const std::string& name, bool& is_leaf) {
  static constexpr std::string_view modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                               "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  is_leaf = name == "LEAF";
  if (is_leaf) return Ensemble::less_equal;
  const auto* it = std::find(std::begin(modes), std::end(modes), name);
  if (it == std::end(modes)) n.malformed(cat("a node of mode '", name, "'"));
  return it - std::begin(modes);
}

/// The trees without weights.
Ensemble nodes_of(const Node& n, Places& places) {
  Ensemble t;
  const std::vector<int64_t> tree = n.integers_or("nodes_treeids"), id = n.integers_or("nodes_nodeids");
  const Attribute* modes = n.attribute("nodes_modes");
  t.features = n.integers_or("nodes_featureids");
  t.splits = numbers_of(n, "nodes_values");
  t.then = n.integers_or("nodes_truenodeids");
  t.otherwise = n.integers_or("nodes_falsenodeids");
  const size_t nodes = t.features.size();
  t.missing = n.integers_or("nodes_missing_value_tracks_true", std::vector<int64_t>(nodes, 0));
  if (modes == nullptr || nodes == 0) n.malformed("it has no nodes");
  for (const size_t size : {tree.size(), id.size(), modes->strings.size(), t.splits.size(), t.then.size(),
                            t.otherwise.size(), t.missing.size()})
    if (size != nodes) n.malformed(cat("an attribute of ", size, " nodes, nodes_featureids of ", nodes));
  for (size_t i = 0; i < nodes; ++i)
    if (!places.emplace(std::pair(tree[i], id[i]), static_cast<int64_t>(i)).second)
      n.malformed(cat("tree ", tree[i], " has two nodes ", id[i]));
  std::set<int64_t> inner;  // nodes that another one leads to
  t.members.resize(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    bool is_leaf = false;
    t.modes.push_back(test_of(n, modes->strings[i], is_leaf));
    for (auto* next : {&t.then, &t.otherwise}) {
      if (is_leaf) {
        (*next)[i] = static_cast<int64_t>(i);
        continue;
      }
      const auto it = places.find({tree[i], (*next)[i]});
      if (it == places.end()) n.malformed(cat("tree ", tree[i], " has no node ", (*next)[i]));
      (*next)[i] = it->second;
      inner.insert(it->second);
    }
    if (is_leaf) t.features[i] = 0;
    if (!is_leaf && t.then[i] == static_cast<int64_t>(i)) n.malformed("a tree whose nodes form a circle");
  }
  std::set<int64_t> rooted;
  for (size_t i = 0; i < nodes; ++i) {
    if (inner.contains(static_cast<int64_t>(i))) continue;
    if (!rooted.insert(tree[i]).second) n.malformed(cat("tree ", tree[i], " has two roots"));
    t.roots.push_back(static_cast<int64_t>(i));
  }
  if (rooted.size() != std::set<int64_t>(tree.begin(), tree.end()).size()) n.malformed("a tree has no root");
  return t;
}

/// Adds the weights of leaves, whose attributes begin with `what`, "target" or "class".
void add_weights(const Node& n, Ensemble& t, const Places& places, const std::string& what) {
  constexpr size_t most = size_t{1} << 26;
  const auto targets = static_cast<size_t>(t.targets);
  if (t.targets < 1 || t.nodes() > most / targets) n.unsupported(cat(t.nodes(), " nodes for ", t.targets, " targets"));
  t.weights.assign(t.nodes() * targets, 0);
  const std::vector<int64_t> tree = n.integers_or(what + "_treeids"), id = n.integers_or(what + "_nodeids"),
                             target = n.integers_or(what + "_ids");
  const std::vector<double> weights = numbers_of(n, what + "_weights");
  if (tree.size() != weights.size() || id.size() != weights.size() || target.size() != weights.size())
    n.malformed(cat(weights.size(), " weights for ", tree.size(), " leaves"));
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto it = places.find({tree[i], id[i]});
    if (it == places.end()) n.malformed(cat("tree ", tree[i], " has no node ", id[i]));
    if (target[i] < 0 || target[i] >= t.targets) n.malformed(cat("a leaf of target ", target[i], " of ", t.targets));
    t.weights[static_cast<size_t>(it->second) * targets + static_cast<size_t>(target[i])] += weights[i];
  }
}

Value* row(const Node& n, const std::vector<double>& values, const Value* like) {
  Tensor t = need(Tensor::zeros(like->type.dtype(), {1, static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) ir::store_f64(t.view(), static_cast<int64_t>(i), values[i]);
  return n.constant(t);
}

Value* with_base(const Node& n, Value* scores, int64_t targets) {
  const std::vector<double> base = numbers_of(n, "base_values");
  if (base.empty()) return scores;
  if (static_cast<int64_t>(base.size()) != targets) n.unsupported(cat(base.size(), " base_values for ", targets));
  return n.add(scores, row(n, base, scores));
}

/// Features as numbers that Core ML computes with.
Value* features_of(const Node& n) {
  Value* x = n.in(0);
  return n.cast(x, x->type.dtype() == DType::fp16 ? DType::fp16 : DType::fp32);
}

void regressor(Node& n) {
  Places places;
  Ensemble trees = nodes_of(n, places);
  trees.targets = n.integer_or("n_targets", 1);
  add_weights(n, trees, places, "target");
  Value* x = features_of(n);
  Value* scores = scores_of_trees(n, x, trees, n.type(0) != DataType::float64);
  const std::string rule = n.text_or("aggregate_function", "SUM");
  const std::string_view op = rule == "SUM"       ? "reduce_sum"
                              : rule == "AVERAGE" ? "reduce_mean"
                              : rule == "MIN"     ? "reduce_min"
                              : rule == "MAX"     ? "reduce_max"
                                                  : "";
  if (op.empty()) n.malformed(cat("aggregate_function '", rule, "'"));
  if (trees.targets > 1 && (rule == "MIN" || rule == "MAX"))
    n.unsupported("the minimum or maximum of trees with several targets");
  scores = with_base(n, n.reduce(op, scores, {1}, false), trees.targets);
  n.set(0, transformed_scores(n, scores, n.text_or("post_transform", "NONE")), DataType::float32);
}

/// Both scores of two classes, where all leaves weigh class 0: as onnxruntime has it, their sum is the score of
/// class 1.
Value* both_scores(const Node& n, Value* score, bool positive, const std::string& transform) {
  if (transform == "NONE" || transform == "SOFTMAX")
    return n.concat({positive ? n.sub(1, score) : n.mul(score, -1), score}, 1);
  // Then the label is not the class with the larger score.
  if (positive || transform != "LOGISTIC")
    n.unsupported(cat("post_transform ", transform, " of ", positive ? "positive " : "", "weights of one class"));
  return n.concat({n.unary("sigmoid", n.mul(score, -1)), n.unary("sigmoid", score)}, 1);
}

void classifier(Node& n) {
  const Tensor labels = class_labels(n, "classlabels_strings", "classlabels_int64s");
  Places places;
  Ensemble trees = nodes_of(n, places);
  trees.targets = labels.count();
  add_weights(n, trees, places, "class");
  const std::vector<int64_t> ids = n.integers_or("class_ids");
  const std::vector<double> weights = numbers_of(n, "class_weights");
  const bool is_single = labels.count() == 2 && std::count(ids.begin(), ids.end(), 0) == std::ssize(ids);
  Value* scores = scores_of_trees(n, features_of(n), trees, n.type(0) != DataType::float64);
  scores = n.reduce("reduce_sum", scores, {1}, false);
  const std::string transform = n.text_or("post_transform", "NONE");
  if (is_single) {
    const bool positive = std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
    std::vector<double> base = numbers_of(n, "base_values");
    if (base.size() > 1) n.unsupported("several base_values for one score");
    Value* score = n.slice(scores, 1, 0, 1);
    if (!base.empty()) score = n.add(score, base[0]);
    scores = both_scores(n, score, positive, transform);
  } else {
    scores = transformed_scores(n, with_base(n, scores, trees.targets), transform);
  }
  set_classified(n, labels, scores);
}

constexpr OperatorImport kTreeEnsemblesOperators[] = {
    {"TreeEnsembleRegressor", regressor, "ai.onnx.ml"},
    {"TreeEnsembleClassifier", classifier, "ai.onnx.ml"},
};

}  // namespace

std::span<const OperatorImport> operators_tree_ensembles() { return kTreeEnsemblesOperators; }

}  // namespace moka::import::onnx
