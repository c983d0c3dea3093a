// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <random>

#include "devices/graph_util.h"

/// Tree ensembles, compared with the reference where features are at thresholds or beside them.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kBranchModes = 4;  // less_equal, less, greater_equal, greater

template <class T>
Tensor tree_list(DType type, const std::vector<T>& values) {
  Tensor t = *Tensor::zeros(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); i++) store_f64(t.view(), static_cast<int64_t>(i), values[i]);
  return t;
}

/// Rows whose features are all equal: at the threshold as double and as float, the next numbers, and extremes.
Tensor rows_beside(double threshold) {
  const auto single = static_cast<float>(threshold);
  const float above = std::nextafterf(single, 1e30f), below = std::nextafterf(single, -1e30f);
  std::vector<double> all{threshold, single, above, below, kInfinity, -kInfinity, std::nan(""), 0};
  for (const double v : {threshold, static_cast<double>(single), (static_cast<double>(single) + above) / 2,
                         (static_cast<double>(single) + below) / 2})
    for (const double to : {-kInfinity, kInfinity}) all.push_back(std::nextafter(v, to));
  all.push_back((static_cast<double>(single) + above) / 2);
  all.push_back((static_cast<double>(single) + below) / 2);
  Tensor x = *Tensor::zeros(DType::fp64, {static_cast<int64_t>(all.size()), kBranchModes});
  for (int64_t i = 0; i < x.count(); i++) store_f64(x.view(), i, all[static_cast<size_t>(i / kBranchModes)]);
  return x;
}

/// A tree for each mode and for both ways of a missing feature, whose sums tell which leaf each one reached.
void expect_same_branches(double threshold, const std::vector<double>& single, int64_t outputs) {
  SCOPED_TRACE(cat(threshold, ", ", outputs, " outputs, single ", single[0], " ", single[1]));
  std::vector<double> mode, feature, limit, on_true, on_false, missing, rounds, roots, index, value;
  for (int k = 0; k < 2 * kBranchModes; k++) {
    const double root = 3 * k, leaf = 2 * k;
    roots.push_back(root);
    for (const double m : {k % kBranchModes, 6, 6}) mode.push_back(m), feature.push_back(k % kBranchModes);
    const bool rounded = single[static_cast<size_t>(k % 2)] != 0;
    for (const double t : {rounded ? static_cast<float>(threshold) : threshold, 0.0, 0.0}) limit.push_back(t);
    for (const double at : {root + 1, leaf, leaf + 1}) on_true.push_back(at);
    for (const double at : {root + 2, leaf + 1, leaf + 2}) on_false.push_back(at);
    for (int n = 0; n < 3; n++) missing.push_back(k / kBranchModes), rounds.push_back(rounded);
    for (int n = 0; n < 2; n++) index.push_back(k % outputs), value.push_back(std::ldexp(1, 2 * k + n));
  }
  Graph g;
  Value* y = g.op("ml_tree_ensemble", {{"x", g.input_of(rows_beside(threshold))},
                                       {"mode", tree_list(DType::uint8, mode)},
                                       {"feature", tree_list(DType::int32, feature)},
                                       {"threshold", tree_list(DType::fp64, limit)},
                                       {"on_true", tree_list(DType::int32, on_true)},
                                       {"on_false", tree_list(DType::int32, on_false)},
                                       {"missing_true", tree_list(DType::boolean, missing)},
                                       {"single", tree_list(DType::boolean, rounds)},
                                       {"roots", tree_list(DType::int32, roots)},
                                       {"leaf_index", tree_list(DType::int32, index)},
                                       {"leaf_value", tree_list(DType::fp64, value)},
                                       {"base", *Tensor::zeros(DType::fp64, {outputs})},
                                       {"rows", true}});
  ASSERT_NE(y, nullptr);
  g.function().body().set_outputs({y});
  const auto got = run(g.function(), g.inputs(), true), expected = run(g.function(), g.inputs(), false);
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  ASSERT_TRUE(expected.ok());
  EXPECT_TRUE(got->has("cpu.ml.trees")) << got->kernels;
  const Tensor &a = got->outputs[0], &e = expected->outputs[0];
  ASSERT_EQ(a.count(), e.count());
  for (int64_t i = 0; i < e.count(); i++) EXPECT_EQ(load_f64(a.view(), i), load_f64(e.view(), i)) << "element " << i;
}

constexpr int64_t kFeatures = 5;

/// Random trees of the depths 0, 1, ..., some balanced and some chains, whose leaves have whole numbers.
Result<Run> predicted(int64_t trees, int64_t rows, bool missing, bool single, bool cpu) {
  std::mt19937 bits(static_cast<unsigned>(trees * 100 + rows));
  std::vector<double> mode, feature, limit, on_true, on_false, is_missing_true, rounds, roots, index, value;
  const auto add = [&](auto&& self, int64_t depth, bool chain) -> size_t {
    const size_t at = mode.size();
    mode.push_back(depth == 0 ? 6 : static_cast<double>(bits() % kBranchModes));
    feature.push_back(depth == 0 ? 0 : static_cast<double>(bits() % kFeatures));
    limit.push_back(static_cast<double>(bits() % 9) / 4 - 1);
    is_missing_true.push_back(bits() % 2);
    rounds.push_back(single);
    on_true.push_back(static_cast<double>(value.size()));
    on_false.push_back(static_cast<double>(value.size() + 1));
    if (depth == 0) {
      index.push_back(0), value.push_back(static_cast<double>(bits() % 1000));
      return at;
    }
    const bool is_left_short = bits() % 2 != 0;
    const double left = static_cast<double>(self(self, chain && is_left_short ? 0 : depth - 1, chain));
    const double right = static_cast<double>(self(self, chain && !is_left_short ? 0 : depth - 1, chain));
    on_true[at] = left, on_false[at] = right;
    return at;
  };
  for (int64_t t = 0; t < trees; t++) {
    const bool chain = t % 2 != 0;
    roots.push_back(static_cast<double>(add(add, t % (chain ? 25 : 9), chain)));
  }
  Tensor x = *Tensor::zeros(DType::fp64, {rows, kFeatures});
  for (int64_t i = 0; i < x.count(); i++)
    store_f64(x.view(), i, missing && bits() % 4 == 0 ? std::nan("") : static_cast<double>(bits() % 17) / 8 - 1);
  Graph g;
  Value* y = g.op("ml_tree_ensemble", {{"x", g.input_of(x)},
                                       {"mode", tree_list(DType::uint8, mode)},
                                       {"feature", tree_list(DType::int32, feature)},
                                       {"threshold", tree_list(DType::fp64, limit)},
                                       {"on_true", tree_list(DType::int32, on_true)},
                                       {"on_false", tree_list(DType::int32, on_false)},
                                       {"missing_true", tree_list(DType::boolean, is_missing_true)},
                                       {"single", tree_list(DType::boolean, rounds)},
                                       {"roots", tree_list(DType::int32, roots)},
                                       {"leaf_index", tree_list(DType::int32, index)},
                                       {"leaf_value", tree_list(DType::fp64, value)},
                                       {"base", *Tensor::zeros(DType::fp64, {1})},
                                       {"rows", true}});
  g.function().body().set_outputs({y});
  return run(g.function(), g.inputs(), cpu);
}

TEST(Trees, OfUnlikeDepthsGiveTheReferencesSums) {
  for (const int64_t trees : {1, 11, 12, 50})
    for (const int64_t rows : {1, 7, 8, 29})
      for (const bool missing : {false, true})
        for (const bool single : {false, true}) {
          SCOPED_TRACE(cat(trees, " trees, ", rows, " rows, missing ", missing, ", single ", single));
          const auto got = predicted(trees, rows, missing, single, true),
                     expected = predicted(trees, rows, missing, single, false);
          ASSERT_TRUE(got.ok()) << got.error().to_string();
          ASSERT_TRUE(expected.ok());
          EXPECT_TRUE(got->has("cpu.ml.trees")) << got->kernels;
          for (int64_t r = 0; r < rows; r++)
            EXPECT_EQ(load_f64(got->outputs[0].view(), r), load_f64(expected->outputs[0].view(), r)) << "row " << r;
        }
}

TEST(Trees, BranchAsTheReferenceBesideTheirThresholds) {
  for (const double threshold : {0.3, 0.5, -0.7, 0.0})
    for (const std::vector<double>& single : {std::vector<double>{0, 0}, {1, 1}, {1, 0}})
      for (const int64_t outputs : {1, 2}) expect_same_branches(threshold, single, outputs);
}

}  // namespace
}  // namespace moka::devices_test
