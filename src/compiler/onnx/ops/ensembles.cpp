// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

/// The columns of TreeEnsembleRegressor, an element for each node and for each value of a leaf.
struct TreeNodes {
  std::vector<int64_t> tree, id, feature, on_true, on_false, tracks;
  std::vector<std::string> mode;
  std::vector<double> value;
  std::vector<int64_t> target_tree, target_node, target;
  std::vector<double> weight;

  void add_target(int64_t of_tree, int64_t of_node, int64_t to, double by) {
    target_tree.push_back(of_tree);
    target_node.push_back(of_node);
    target.push_back(to);
    weight.push_back(by);
  }
  std::vector<ox::Attribute> attributes(int64_t outputs) const {
    return {attr("nodes_treeids", tree),
            attr("nodes_nodeids", id),
            attr("nodes_featureids", feature),
            attr("nodes_modes", mode),
            attr("nodes_truenodeids", on_true),
            attr("nodes_falsenodeids", on_false),
            attr("nodes_missing_value_tracks_true", tracks),
            attr("target_treeids", target_tree),
            attr("target_nodeids", target_node),
            attr("target_ids", target),
            attr("n_targets", outputs),
            attr("aggregate_function", "SUM"),
            attr("post_transform", "NONE")};
  }
};

constexpr int64_t kNotEqual = 5, kLeaf = 6;  // in `mode`

/// The parameters of the operation, an element for each node but in `roots`.
struct Trees {
  std::vector<int64_t> mode, feature, yes, no, missing, roots, target, single;

  explicit Trees(Call& c)
      : mode(c.ints("mode")),
        feature(c.ints("feature")),
        yes(c.ints("on_true")),
        no(c.ints("on_false")),
        missing(c.ints("missing_true")),
        roots(c.ints("roots")),
        target(c.ints("leaf_index")),
        single(c.ints("single")) {}
};

/// Which features the nodes round to float32.
struct Rounding {
  bool any = false, all = true;

  explicit Rounding(const Trees& trees) {
    for (size_t i = 0; i < trees.mode.size(); i++) {
      if (trees.mode[i] == kLeaf) continue;
      any |= trees.single[i] != 0;
      all &= trees.single[i] != 0;
    }
  }
};

/// The nodes of the trees. Features that a node rounds to float32 first are a second half of the vector. nullopt:
/// refused.
std::optional<TreeNodes> tree_nodes(Call& c, const Trees& trees, const Rounding& rounding, int64_t features,
                                    const ir::Tensor& threshold, const ir::Tensor& weight) {
  constexpr const char* modes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                   "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
  const auto& [mode, feature, yes, no, missing, roots, target, single] = trees;
  std::vector<int64_t> starts = roots;
  std::sort(starts.begin(), starts.end());
  TreeNodes out;
  for (size_t i = 0; i < mode.size(); i++) {
    const auto next = std::upper_bound(starts.begin(), starts.end(), static_cast<int64_t>(i));
    const int64_t t = next - starts.begin() - 1;
    if (t < 0) return c.refuse("a node belongs to no tree"), std::nullopt;
    const int64_t first = starts[static_cast<size_t>(t)], id = static_cast<int64_t>(i) - first;
    const bool leaf = mode[i] == kLeaf;
    if (!leaf && yes[i] == no[i]) return c.refuse("both ways of a node lead to the same node"), std::nullopt;
    out.tree.push_back(t);
    out.id.push_back(id);
    // NaN differs from every number, so `not equal` cannot send it away: `equal` with exchanged ways can.
    const bool exchanged = mode[i] == kNotEqual;
    out.mode.push_back(modes[exchanged ? kNotEqual - 1 : std::clamp<int64_t>(mode[i], 0, kLeaf)]);
    out.on_true.push_back(leaf ? 0 : (exchanged ? no[i] : yes[i]) - first);
    out.on_false.push_back(leaf ? 0 : (exchanged ? yes[i] : no[i]) - first);
    out.tracks.push_back(leaf ? 0 : exchanged ? 1 - missing[i] : missing[i]);
    out.feature.push_back(leaf ? 0 : feature[i] + (single[i] != 0 && !rounding.all ? features : 0));
    out.value.push_back(leaf ? 0 : ir::load_f64(threshold.view(), static_cast<int64_t>(i)));
    if (!leaf) continue;
    for (int64_t v = yes[i]; v < no[i]; v++)
      out.add_target(t, id, target[static_cast<size_t>(v)], ir::load_f64(weight.view(), v));
    if (yes[i] == no[i]) out.add_target(t, id, 0, 0);
  }
  return out;
}

/// Numbers as an attribute of float32, or as a tensor of double.
ox::Attribute numbers(const std::string& name, const std::vector<double>& values, bool as_floats) {
  if (as_floats) return attr(name, std::vector<float>(values.begin(), values.end()));
  const std::string tensor_name = name + "_as_tensor";
  ox::Tensor t;
  t.name = tensor_name;
  t.type = DataType::float64;
  t.dims = {static_cast<int64_t>(values.size())};
  t.raw = Bytes::copy_of(std::as_bytes(std::span(values)));
  return attr(tensor_name, std::move(t));
}

/// Trees as the nodes of TreeEnsembleRegressor. Thresholds are compared in double.
void tree_ensemble(Call& c) {
  const auto threshold = c.constant("threshold"), weight = c.constant("leaf_value"), base = c.constant("base");
  const Trees trees(c);
  if (!threshold || !weight || !base || c.refused()) return c.refuse("its nodes are not constants");
  const ir::Type& x = c.type("x");
  if (!x.is_ranked() || !x.is_concrete()) return c.refuse("the number of its features is not known");
  const Rounding rounding(trees);
  const auto nodes = tree_nodes(c, trees, rounding, x.shape().count(), *threshold, *weight);
  if (!nodes) return;
  const int64_t outputs = base->count();
  std::vector<ox::Attribute> a = nodes->attributes(outputs);
  a.push_back(numbers("nodes_values", nodes->value, rounding.all));
  a.push_back(numbers("target_weights", nodes->weight, rounding.all));
  std::vector<double> bases;
  bool has_base = false;
  for (int64_t i = 0; i < outputs; i++) {
    bases.push_back(ir::load_f64(base->view(), i));
    has_base |= bases.back() != 0;
  }
  if (has_base) a.push_back(numbers("base_values", bases, rounding.all));
  Name v = c.x();
  if (rounding.all) {
    v = c.cast(v, DType::fp32);
  } else if (rounding.any) {
    const Name rounded = c.cast(c.cast(v, DType::fp32), DType::fp64);
    v = c.node("Concat", {v, rounded}, {attr("axis", 0)});
  }
  const Name y = c.ml("TreeEnsembleRegressor", {c.unsqueeze(v, {0})}, std::move(a));
  c.set(c.cast(c.reshape(y, {outputs}), DType::fp64));
}

/// Support vectors as a matrix.
std::optional<ir::Tensor> matrix(Call& c, const ir::Op& op) {
  const ir::StaticCall call(op);
  const ir::Type& x = op.input("x")->type;
  if (!x.is_ranked() || !x.is_concrete()) return c.refuse("the number of its features is not known"), std::nullopt;
  const ir::TensorView *begin = call.call().value("row_begin"), *columns = call.call().value("columns"),
                       *values = call.call().value("values");
  if (begin == nullptr || columns == nullptr || values == nullptr)
    return c.refuse("its support vectors are not constants"), std::nullopt;
  const int64_t rows = begin->count() - 1, width = x.shape().count();
  ir::Tensor out = c.take(ir::Tensor::zeros(DType::fp64, {rows, width}));
  if (c.refused()) return std::nullopt;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = ir::load_i64(*begin, r); i < ir::load_i64(*begin, r + 1); i++)
      ir::store_f64(out.view(), r * width + ir::load_i64(*columns, i), ir::load_f64(*values, i));
  return out;
}

/// Whether SVMClassifier computes the kernel itself.
bool is_coupled(const ir::Op& op) { return op.input("prob_a") != nullptr && op.output()->type.shape()[0] > 2; }

void svm_kernel(Call& c) {
  const auto& users = c.op.output()->users();
  if (users.size() == 1 && users[0]->type_name() == "ml_svm_classify" && is_coupled(*users[0])) return;
  const auto vectors = matrix(c, c.op);
  if (!vectors) return;
  const DType f = DType::fp64;
  const std::string kernel = c.text("kernel");
  const double gamma = c.number("gamma"), offset = c.number("c");
  const Name s = c.graph.tensor(*vectors);
  if (kernel == "rbf") {
    const Name difference = c.node("Sub", {s, c.x()});
    const Name distance =
        c.node("ReduceSum", {c.node("Mul", {difference, difference}), c.i64({1})}, {attr("keepdims", 0)});
    return c.set(c.node("Exp", {c.node("Mul", {distance, c.scalar(f, -gamma)})}));
  }
  Name y = c.node("MatMul", {s, c.x()});
  if (kernel == "linear") return c.set(y);
  y = c.node("Add", {c.node("Mul", {y, c.scalar(f, gamma)}), c.scalar(f, offset)});
  if (kernel == "poly") return c.set(c.node("Pow", {y, c.scalar(f, static_cast<double>(c.integer("degree")))}));
  // Tanh in double, which onnxruntime lacks: 2 sigmoid(2 x) - 1.
  const Name twice = c.node("Sigmoid", {c.node("Mul", {y, c.scalar(f, 2)})});
  c.set(c.node("Sub", {c.node("Mul", {twice, c.scalar(f, 2)}), c.scalar(f, 1)}));
}

std::vector<float> floats(Call& c, const char* param) {
  std::vector<float> out;
  if (const auto t = c.constant(param))
    for (int64_t i = 0; i < t->count(); i++) out.push_back(static_cast<float>(ir::load_f64(t->view(), i)));
  return out;
}

/// Probabilities by pairwise coupling, which iterates: SVMClassifier does it.
void coupled(Call& c) {
  const ir::Op* kernel = c.op.input("x")->producer();
  if (kernel == nullptr || kernel->type_name() != "ml_svm_kernel" || kernel->output()->users().size() != 1)
    return c.refuse("its kernel values are not those of a kernel of its own");
  const auto vectors = matrix(c, *kernel);
  if (!vectors) return;
  const ir::StaticCall call(*kernel);
  const std::string name(c.take(call.call().text("kernel")));
  const std::string type = name == "rbf" ? "RBF" : name == "poly" ? "POLY" : name == "linear" ? "LINEAR" : "SIGMOID";
  std::vector<float> support, rho = floats(c, "rho");
  for (int64_t i = 0; i < vectors->count(); i++)
    support.push_back(static_cast<float>(ir::load_f64(vectors->view(), i)));
  for (float& r : rho) r = -r;
  const std::vector<int64_t> counts = c.ints("counts");
  std::vector<int64_t> labels;
  for (size_t i = 0; i < counts.size(); i++) labels.push_back(static_cast<int64_t>(i));
  const std::vector<float> params{static_cast<float>(c.take(call.call().number("gamma"))),
                                  static_cast<float>(c.take(call.call().number("c"))),
                                  static_cast<float>(c.take(call.call().integer("degree")))};
  if (c.refused()) return;
  const Name x = c.cast(c.unsqueeze(c.x(kernel->input("x")), {0}), DType::fp32);
  const auto y =
      c.nodes("SVMClassifier", {x},
              {attr("classlabels_ints", labels), attr("vectors_per_class", counts), attr("support_vectors", support),
               attr("coefficients", floats(c, "coefficients")), attr("rho", rho), attr("prob_a", floats(c, "prob_a")),
               attr("prob_b", floats(c, "prob_b")), attr("kernel_type", type.c_str()), attr("kernel_params", params),
               attr("post_transform", "NONE")},
              2, "ai.onnx.ml");
  c.set(c.cast(c.reshape(y[1], {-1}), DType::fp64));
}

bool has_nan(const ir::Tensor& t) {
  for (int64_t i = 0; i < t.count(); i++)
    if (std::isnan(ir::load_f64(t.view(), i))) return true;
  return false;
}

/// Votes of all pairs, or the probability of the one pair.
void svm_classify(Call& c) {
  if (is_coupled(c.op)) return coupled(c);
  const DType f = DType::fp64;
  const auto alpha = c.constant("coefficients");
  const std::vector<int64_t> counts = c.ints("counts");
  if (!alpha || c.refused()) return c.refuse("its coefficients are not constants");
  const auto k = static_cast<int64_t>(counts.size()), vectors = alpha->shape()[1], pairs = k * (k - 1) / 2;
  ir::Tensor decide = c.take(ir::Tensor::zeros(f, {pairs, vectors}));
  ir::Tensor votes = c.take(ir::Tensor::zeros(f, {pairs, k}));
  ir::Tensor lost = c.take(ir::Tensor::zeros(f, {k}));
  if (c.refused()) return;
  int64_t begin_i = 0, pair = 0;
  const double share = 1.0 / static_cast<double>(std::max<int64_t>(1, pairs));
  for (int64_t i = 0; i < k; begin_i += counts[static_cast<size_t>(i++)]) {
    int64_t begin_j = begin_i + counts[static_cast<size_t>(i)];
    for (int64_t j = i + 1; j < k; begin_j += counts[static_cast<size_t>(j++)], pair++) {
      const auto copy = [&](int64_t row, int64_t begin, int64_t n) {
        for (int64_t s = begin; s < begin + n; s++)
          ir::store_f64(decide.view(), pair * vectors + s, ir::load_f64(alpha->view(), row * vectors + s));
      };
      copy(j - 1, begin_i, counts[static_cast<size_t>(i)]);
      copy(i, begin_j, counts[static_cast<size_t>(j)]);
      // A vote counts for i, and takes back the one that j has without it.
      ir::store_f64(votes.view(), pair * k + i, share);
      ir::store_f64(votes.view(), pair * k + j, -share);
      ir::store_f64(lost.view(), j, ir::load_f64(lost.view(), j) + share);
    }
  }
  const Name decisions = c.node("Sub", {c.node("MatMul", {c.graph.tensor(decide), c.x()}), c.x("rho")});
  if (c.has("prob_a")) {
    const Name line = c.node("Add", {c.node("Mul", {decisions, c.x("prob_a")}), c.x("prob_b")});
    const Name p = c.node("Sigmoid", {c.node("Mul", {line, c.scalar(f, -1)})});
    Name first = c.node("Clip", {p, c.scalar(f, 1e-7), c.scalar(f, 1 - 1e-7)});
    // LIBSVM writes models whose decisions are NaN.
    if (has_nan(*alpha) || has_nan(*c.constant("rho")) || has_nan(*c.constant("prob_a")) ||
        has_nan(*c.constant("prob_b")))
      first = c.node("Where", {c.node("IsNaN", {p}), c.scalar(f, 1e-7), first});
    const Name one = c.graph.tensor(ir::Tensor::scalar(f, 1).reshaped({1}));
    return c.set(c.node("Concat", {first, c.node("Sub", {one, first})}, {attr("axis", 0)}));
  }
  const Name won = c.cast(c.node("Greater", {decisions, c.scalar(f, 0)}), f);
  c.set(c.node("Add", {c.node("MatMul", {won, c.graph.tensor(votes)}), c.graph.tensor(lost)}));
}

}  // namespace

std::span<const OpWriter> writers_ensembles();
std::span<const OpWriter> writers_ensembles() {
  static constexpr OpWriter list[] = {
      {"ml_tree_ensemble", tree_ensemble},
      {"ml_svm_kernel", svm_kernel},
      {"ml_svm_classify", svm_classify},
  };
  return list;
}

}  // namespace moka::compiler::onnx
