// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "import/classic/classic.h"

namespace moka::import {
namespace {

using classic::Site;
using ir::DType;
using ir::Tensor;
using ir::Value;
using proto::TreeEnsembleParameters;
using Node = TreeEnsembleParameters::TreeNode;

std::string place(const Node& n) { return cat("tree ", n.treeid(), ", node ", n.nodeid()); }
bool is_leaf(const Node& n) { return n.nodebehavior() == TreeEnsembleParameters::TreeNode::LeafNode; }
/// Whether a threshold is a float32, which shows that the trees were trained on float32 features. Features are then
/// rounded to float32 before the comparison, as xgboost and scikit-learn do.
bool fits_float(double v) { return v != v || static_cast<double>(static_cast<float>(v)) == v; }

/// Finds nodes by tree and by number within the tree.
class Index {
 public:
  static Result<Index> make(const TreeEnsembleParameters& p) {
    Index index(p);
    for (int i = 0; i < p.nodes_size(); ++i) index.order_.push_back(i);
    auto key = [&](int i) { return std::pair(p.nodes(i).treeid(), p.nodes(i).nodeid()); };
    std::sort(index.order_.begin(), index.order_.end(), [&](int a, int b) { return key(a) < key(b); });
    for (size_t i = 1; i < index.order_.size(); ++i)
      if (key(index.order_[i]) == key(index.order_[i - 1]))
        return fail(ErrorCode::malformed, place(p.nodes(index.order_[i])), ": the number is used twice");
    return index;
  }

  Result<int> child(const Node& parent, uint64_t id) const {
    auto wanted = std::pair(parent.treeid(), id);
    auto it = std::lower_bound(order_.begin(), order_.end(), wanted, [&](int i, const auto& k) {
      return std::pair(p_->nodes(i).treeid(), p_->nodes(i).nodeid()) < k;
    });
    if (it == order_.end() || std::pair(p_->nodes(*it).treeid(), p_->nodes(*it).nodeid()) != wanted)
      return fail(ErrorCode::malformed, place(parent), ": there is no child ", id);
    return *it;
  }
  const std::vector<int>& order() const { return order_; }

 private:
  explicit Index(const TreeEnsembleParameters& p) : p_(&p) {}
  const TreeEnsembleParameters* p_;
  std::vector<int> order_;
};

/// Children of all nodes, and the root of each tree.
struct Links {
  std::vector<int> on_true, on_false, roots;
};

Status adopt(const TreeEnsembleParameters& p, int child, std::vector<bool>& has_parent) {
  if (has_parent[static_cast<size_t>(child)])
    return fail(ErrorCode::malformed, place(p.nodes(child)), ": it has two parents");
  has_parent[static_cast<size_t>(child)] = true;
  return {};
}

Result<Links> link(const TreeEnsembleParameters& p) {
  Index index = MOKA_TRY(Index::make(p));
  auto n = static_cast<size_t>(p.nodes_size());
  Links links{std::vector<int>(n, -1), std::vector<int>(n, -1), {}};
  std::vector<bool> has_parent(n);
  for (size_t i = 0; i < n; ++i) {
    const Node& node = p.nodes(static_cast<int>(i));
    if (!TreeEnsembleParameters::TreeNode::TreeNodeBehavior_IsValid(node.nodebehavior()))
      return fail(ErrorCode::unsupported, place(node), ": unknown behavior ", static_cast<int>(node.nodebehavior()));
    if (is_leaf(node)) continue;
    links.on_true[i] = MOKA_TRY(index.child(node, node.truechildnodeid()));
    links.on_false[i] = MOKA_TRY(index.child(node, node.falsechildnodeid()));
    MOKA_TRY(adopt(p, links.on_true[i], has_parent));
    if (links.on_false[i] != links.on_true[i]) MOKA_TRY(adopt(p, links.on_false[i], has_parent));
  }
  for (size_t k = 0; k < n; ++k) {
    int i = index.order()[k];
    if (has_parent[static_cast<size_t>(i)]) continue;
    if (!links.roots.empty() && p.nodes(links.roots.back()).treeid() == p.nodes(i).treeid())
      return fail(ErrorCode::malformed, place(p.nodes(i)), ": a second root beside node ",
                  p.nodes(links.roots.back()).nodeid());
    links.roots.push_back(i);
  }
  return links;
}

struct Flat {
  std::vector<uint8_t> mode, missing_true, single;
  std::vector<int32_t> feature, on_true, on_false, roots, leaf_index;
  std::vector<double> threshold, leaf_value;
  int64_t features = 0;
};

Status add_leaf(const Node& node, uint64_t dimensions, Flat& out) {
  out.on_true.back() = static_cast<int32_t>(out.leaf_index.size());
  for (const auto& e : node.evaluationinfo()) {
    if (e.evaluationindex() >= dimensions)
      return fail(ErrorCode::malformed, place(node), ": expected an evaluation index below ", dimensions, ", got ",
                  e.evaluationindex());
    out.leaf_index.push_back(static_cast<int32_t>(e.evaluationindex()));
    out.leaf_value.push_back(e.evaluationvalue());
  }
  out.on_false.back() = static_cast<int32_t>(out.leaf_index.size());
  return {};
}

/// All trees in one list. Each parent precedes its children.
Result<Flat> flatten(const TreeEnsembleParameters& p, uint64_t dimensions) {
  Links links = MOKA_TRY(link(p));
  Flat out;
  struct Pending {
    int node;
    int32_t parent;
    bool is_true, is_false;
  };
  std::vector<Pending> stack;
  for (int root : links.roots) {
    out.roots.push_back(static_cast<int32_t>(out.mode.size()));
    stack.push_back({root, -1, false, false});
    while (!stack.empty()) {
      Pending next = stack.back();
      stack.pop_back();
      auto at = static_cast<int32_t>(out.mode.size());
      if (next.is_true) out.on_true[static_cast<size_t>(next.parent)] = at;
      if (next.is_false) out.on_false[static_cast<size_t>(next.parent)] = at;
      const Node& node = p.nodes(next.node);
      out.mode.push_back(static_cast<uint8_t>(node.nodebehavior()));
      out.missing_true.push_back(node.missingvaluetrackstruechild() ? 1 : 0);
      out.threshold.push_back(node.branchfeaturevalue());
      out.single.push_back(fits_float(node.branchfeaturevalue()) ? 1 : 0);
      out.feature.push_back(0);
      out.on_true.push_back(0);
      out.on_false.push_back(0);
      if (is_leaf(node)) {
        MOKA_TRY(add_leaf(node, dimensions, out));
        continue;
      }
      if (node.branchfeatureindex() >= (uint64_t{1} << 31))
        return fail(ErrorCode::malformed, place(node), ": expected a feature index below 2^31, got ",
                    node.branchfeatureindex());
      out.feature.back() = static_cast<int32_t>(node.branchfeatureindex());
      out.features = std::max(out.features, static_cast<int64_t>(node.branchfeatureindex()) + 1);
      int t = links.on_true[static_cast<size_t>(next.node)], f = links.on_false[static_cast<size_t>(next.node)];
      if (t != f) stack.push_back({f, at, false, true});
      stack.push_back({t, at, true, t == f});
    }
  }
  if (out.mode.size() != static_cast<size_t>(p.nodes_size()))
    return fail(ErrorCode::malformed, "tree ensemble: ", static_cast<size_t>(p.nodes_size()) - out.mode.size(), " of ",
                p.nodes_size(), " nodes belong to a cycle");
  return out;
}

Result<Value*> evaluate(const Site& site, const TreeEnsembleParameters& p) {
  if (p.nodes_size() == 0) return fail(ErrorCode::malformed, "tree ensemble without nodes");
  uint64_t dimensions = p.numpredictiondimensions();
  if (dimensions == 0) dimensions = static_cast<uint64_t>(std::max(1, p.basepredictionvalue_size()));
  if (p.basepredictionvalue_size() == 0 ? dimensions > 65536
                                        : static_cast<uint64_t>(p.basepredictionvalue_size()) != dimensions)
    return fail(ErrorCode::malformed, "tree ensemble: expected ", dimensions, " base prediction values, got ",
                p.basepredictionvalue_size());
  Flat flat = MOKA_TRY(flatten(p, dimensions));
  if (flat.leaf_index.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    return fail(ErrorCode::unsupported, "tree ensemble with ", flat.leaf_index.size(), " leaf values");
  std::vector<double> base(p.basepredictionvalue().begin(), p.basepredictionvalue().end());
  base.resize(dimensions, 0.0);
  Value* x = MOKA_TRY(site.vector(flat.features));
  std::vector<ir::NamedArg> args{{"x", x}};
  args.emplace_back("mode", MOKA_TRY(site.tensor(flat.mode, DType::uint8)));
  args.emplace_back("single", MOKA_TRY(site.tensor(flat.single, DType::boolean)));
  args.emplace_back("missing_true", MOKA_TRY(site.tensor(flat.missing_true, DType::boolean)));
  args.emplace_back("threshold", MOKA_TRY(site.tensor(flat.threshold)));
  args.emplace_back("leaf_value", MOKA_TRY(site.tensor(flat.leaf_value)));
  args.emplace_back("base", MOKA_TRY(site.tensor(base)));
  for (auto& [name, values] : {std::pair{"feature", &flat.feature},
                               {"on_true", &flat.on_true},
                               {"on_false", &flat.on_false},
                               {"roots", &flat.roots},
                               {"leaf_index", &flat.leaf_index}})
    args.emplace_back(name, MOKA_TRY(site.tensor(*values)));
  return site.op("ml_tree_ensemble", std::move(args), "trees");
}

Status import_regressor(const Site& site, const proto::TreeEnsembleRegressor& m) {
  Value* y = MOKA_TRY(evaluate(site, m.treeensemble()));
  const char* mode = nullptr;
  switch (m.postevaluationtransform()) {
    case proto::NoTransform: break;
    case proto::Regression_Logistic: mode = "logit"; break;
    case proto::Classification_SoftMax: mode = "softmax"; break;
    case proto::Classification_SoftMaxWithZeroClassReference: mode = "softmax_with_reference"; break;
    default:
      return fail(ErrorCode::unsupported, "treeEnsembleRegressor: unknown post-evaluation transform ",
                  static_cast<int>(m.postevaluationtransform()));
  }
  if (mode != nullptr) y = MOKA_TRY(site.op("ml_link", {{"x", y}, {"mode", mode}}, "transform"));
  return site.output(*MOKA_TRY(site.only_output()), y);
}

Status import_classifier(const Site& site, const proto::TreeEnsembleClassifier& m) {
  Tensor classes = MOKA_TRY(classic::class_labels(site, m));
  Value* y = MOKA_TRY(evaluate(site, m.treeensemble()));
  int64_t dimensions = y->type.shape()[y->type.rank() - 1], count = classes.count();
  bool binary = dimensions == 1 && count == 2;
  auto transform = m.postevaluationtransform();
  bool reference = transform == proto::Classification_SoftMaxWithZeroClassReference ||
                   (transform == proto::Classification_SoftMax && binary);
  int64_t expected = transform == proto::Classification_SoftMaxWithZeroClassReference ? count - 1 : count;
  if (!binary && dimensions != expected)
    return fail(ErrorCode::malformed, "treeEnsembleClassifier: expected ", expected, " prediction dimensions for ",
                count, " classes, got ", dimensions);
  const char* mode = nullptr;
  switch (transform) {
    case proto::NoTransform: break;
    case proto::Regression_Logistic: mode = "logit"; break;
    case proto::Classification_SoftMax:
    case proto::Classification_SoftMaxWithZeroClassReference:
      mode = reference ? "softmax_with_reference" : "softmax";
      break;
    default:
      return fail(ErrorCode::unsupported, "treeEnsembleClassifier: unknown post-evaluation transform ",
                  static_cast<int>(transform));
  }
  if (mode != nullptr) y = MOKA_TRY(site.op("ml_link", {{"x", y}, {"mode", mode}}, "transform"));
  if (binary && !reference) y = MOKA_TRY(site.op("ml_link", {{"x", y}, {"mode", "complement"}}, "complement"));
  return site.classify(y, std::move(classes));
}

Status import_tree_ensemble(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                            Features& features) {
  Site site = MOKA_TRY(Site::open(model, context, builder, features));
  return model.Type_case() == proto::Model::kTreeEnsembleRegressor
             ? import_regressor(site, model.treeensembleregressor())
             : import_classifier(site, model.treeensembleclassifier());
}

}  // namespace

ModelImporter importer_tree_ensemble() {
  static constexpr int types[] = {proto::Model::kTreeEnsembleRegressor, proto::Model::kTreeEnsembleClassifier};
  return {types, import_tree_ensemble, true};
}

}  // namespace moka::import
