// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/ensemble.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moka::import::onnx {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 26;

/// The steps from the roots to the farthest leaf. Refuses nodes that lead back to themselves.
int64_t depth_of(const Node& n, const Ensemble& trees) {
  int64_t depth = 0;
  const auto is_leaf = [&](int64_t at) { return trees.then[static_cast<size_t>(at)] == at; };
  std::vector<int64_t> level = trees.roots;
  for (;;) {
    std::vector<int64_t> next;
    for (const int64_t at : level) {
      if (is_leaf(at)) continue;
      next.push_back(trees.then[static_cast<size_t>(at)]);
      next.push_back(trees.otherwise[static_cast<size_t>(at)]);
    }
    if (next.empty()) return depth;
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    level = std::move(next);
    if (++depth > static_cast<int64_t>(trees.nodes())) n.malformed("a tree whose nodes form a circle");
  }
}

Tensor table(DType type, const Shape& shape, const std::vector<double>& values) {
  Tensor t = need(Tensor::zeros(type, shape));
  for (size_t i = 0; i < values.size(); ++i) ir::store_f64(t.view(), static_cast<int64_t>(i), values[i]);
  return t;
}

/// A number of float32 that numbers of float32 compare with as with `split`.
double float_split(double split, int64_t mode) {
  const auto near = static_cast<float>(split);
  if (static_cast<double>(near) == split || std::isnan(split) || std::isinf(near)) return near;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  switch (mode) {
    case Ensemble::less_equal:
    case Ensemble::greater: return near < split ? near : std::nextafter(near, -infinity);
    case Ensemble::less:
    case Ensemble::greater_equal: return near > split ? near : std::nextafter(near, infinity);
    default: return std::numeric_limits<double>::quiet_NaN();  // equals none
  }
}

/// Tests of the current nodes of all rows and trees.
class Tests {
 public:
  Tests(const Node& n, const Ensemble& trees, DType type, bool exact) : n_(n) {
    const auto all = static_cast<int64_t>(trees.nodes());
    std::vector<double> splits = trees.splits;
    for (size_t i = 0; i < splits.size() && exact && type == DType::fp32; ++i)
      splits[i] = float_split(splits[i], trees.modes[i]);
    splits_ = n.constant(table(type, Shape{all}, splits));
    size_t largest = 0;
    for (const auto& set : trees.members) largest = std::max(largest, set.size());
    if (static_cast<int64_t>(largest) > kMostElements / all) n.unsupported(cat("sets of ", largest, " members"));
    std::vector<double> members;
    for (auto set : trees.members) {
      set.resize(largest, std::numeric_limits<double>::quiet_NaN());
      members.insert(members.end(), set.begin(), set.end());
    }
    if (largest > 0) sets_ = n.constant(table(type, Shape{all, static_cast<int64_t>(largest)}, members));
    bool follows = false, stays = false;
    for (size_t i = 0; i < trees.nodes(); ++i) {
      if (trees.then[i] == static_cast<int64_t>(i)) continue;
      (trees.missing[i] != 0 ? follows : stays) = true;
      used_[static_cast<size_t>(trees.modes[i])] = true;
    }
    only_ = std::count(std::begin(used_), std::end(used_), true) == 1;
    modes_ = only_ ? nullptr : n.integers_constant(trees.modes);
    // No comparison with NaN holds but `not equal`.
    if (follows || used_[Ensemble::not_equal]) missing_ = n.integers_constant(trees.missing);
    always_follows_ = !stays;
  }

  Value* look_up(Value* from, Value* at) const { return n_.op("gather", {{"x", from}, {"indices", at}, {"axis", 0}}); }

  /// Whether the numbers `v` pass the tests of the nodes `at`.
  Value* hold(Value* v, Value* at) const {
    static constexpr std::string_view operations[] = {"less_equal", "less",  "greater_equal",
                                                      "greater",    "equal", "not_equal"};
    Value *split = look_up(splits_, at), *mode = only_ ? nullptr : look_up(modes_, at), *holds = nullptr;
    for (size_t m = 0; m < std::size(used_); ++m) {
      if (!used_[m] || (m == Ensemble::member && sets_ == nullptr)) continue;
      Value* test = nullptr;
      if (m != Ensemble::member) {
        test = n_.binary(operations[m], v, split);
      } else {
        Value* matches = n_.binary("equal", n_.expand_dims(v, {2}), look_up(sets_, at));
        test = n_.cast(n_.reduce("reduce_max", n_.cast(matches, DType::int32), {2}, false), DType::boolean);
      }
      if (!only_)
        test = n_.binary("logical_and", test, n_.binary("equal", mode, n_.scalar(static_cast<double>(m), mode)));
      holds = holds == nullptr ? test : n_.binary("logical_or", holds, test);
    }
    if (holds == nullptr) holds = n_.binary("not_equal", at, at);  // sets without members
    if (missing_ == nullptr) return holds;
    Value* is_number = n_.binary("equal", v, v);
    Value* is_missing = n_.unary("logical_not", is_number);
    if (!always_follows_)
      is_missing =
          n_.binary("logical_and", is_missing, n_.binary("not_equal", look_up(missing_, at), n_.scalar(0, missing_)));
    if (always_follows_ && !used_[Ensemble::not_equal]) return n_.binary("logical_or", holds, is_missing);
    return n_.binary("logical_or", n_.binary("logical_and", is_number, holds), is_missing);
  }

 private:
  const Node& n_;
  Value *splits_ = nullptr, *sets_ = nullptr, *modes_ = nullptr, *missing_ = nullptr;
  bool used_[7] = {}, only_ = false, always_follows_ = false;
};

}  // namespace

Value* scores_of_trees(const Node& n, Value* x, const Ensemble& trees, bool exact) {
  const Shape s = n.known_shape(x, n.message.op_type);
  if (s.rank() != 2) n.malformed(cat("features of shape ", s));
  const auto all = static_cast<int64_t>(trees.nodes());
  if (all == 0 || all > kMostElements / trees.targets)
    n.unsupported(cat(all, " nodes for ", trees.targets, " targets"));
  for (const int64_t f : trees.features)
    if (f < 0 || f >= s[1]) n.malformed(cat("feature ", f, " of ", s[1]));
  const int64_t depth = depth_of(n, trees);
  constexpr int64_t deepest = 256;
  if (depth > deepest) n.unsupported(cat("a tree of depth ", depth, ": expected at most ", deepest));
  const DType type = x->type.dtype();
  const Tests tests(n, trees, type, exact);
  Value *features = n.integers_constant(trees.features), *then = n.integers_constant(trees.then),
        *otherwise = n.integers_constant(trees.otherwise);
  Value* at = n.broadcast(n.integers_constant(trees.roots), {s[0], static_cast<int64_t>(trees.roots.size())});
  for (int64_t level = 0; level < depth; ++level) {
    Value* v = n.op("gather_along_axis", {{"x", x}, {"indices", tests.look_up(features, at)}, {"axis", 1}});
    at = n.select(tests.hold(v, at), tests.look_up(then, at), tests.look_up(otherwise, at));
  }
  return tests.look_up(n.constant(table(type, Shape{all, trees.targets}, trees.weights)), at);
}

Value* transformed_scores(const Node& n, Value* scores, const std::string& transform) {
  if (transform == "NONE") return scores;
  if (transform == "LOGISTIC") return n.unary("sigmoid", scores);
  Value* softmax = n.op("softmax", {{"x", scores}, {"axis", 1}});
  if (transform == "SOFTMAX") return softmax;
  n.unsupported(cat("post_transform ", transform));
}

std::vector<double> numbers_of(const Node& n, std::string_view name) {
  if (const Attribute* list = n.attribute(name); list != nullptr && list->tensors.empty())
    return {list->numbers.begin(), list->numbers.end()};
  const Attribute* a = n.attribute(name);
  if (a == nullptr) a = n.attribute(cat(name, "_as_tensor"));
  if (a == nullptr || a->tensors.empty()) return {};
  const Tensor t = tensor_of(a->tensors[0], n.scope.context.file);
  if (t.dtype() == DType::string) n.malformed(cat(name, ": expected numbers, got strings"));
  std::vector<double> out(static_cast<size_t>(t.count()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = ir::is_float(t.dtype()) ? ir::load_f64(t.view(), static_cast<int64_t>(i))
                                     : static_cast<double>(ir::load_i64(t.view(), static_cast<int64_t>(i)));
  return out;
}

}  // namespace moka::import::onnx
