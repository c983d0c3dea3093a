// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "devices/graph_util.h"

namespace moka::devices_test {

using namespace ir;

namespace {

/// One element of the input, the weight or the addend is NaN or infinite, and an activation follows.
struct OddCase {
  std::string_view kernel;
  std::string op;
  Shape x, weight;
  std::string part;  ///< the odd one
  bool constant = true;
};

void check_odd(const OddCase& c, float odd, const std::string& after) {
  SCOPED_TRACE(cat(c.kernel, " ", c.part, " ", odd, " ", after));
  Graph g;
  Tensor x = g.random(c.x, 0.5f, 1), weight = g.random(c.weight, -0.1f, 0.1f);
  if (c.part == "x") x.mut<float>()[static_cast<size_t>(c.x.count() / 2)] = odd;
  if (c.part == "weight") weight.mut<float>()[static_cast<size_t>(c.weight.count() / 2)] = odd;
  std::vector<NamedArg> args{{"x", g.input_of(x)}};
  if (c.op == "avg_pool") {
    args.insert(args.end(), {{"kernel_sizes", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pad_type", "valid"}});
  } else if (c.constant) {
    args.emplace_back("weight", weight);
  } else {
    args.emplace_back("weight", g.input_of(weight));
  }
  Value* y = g.op(c.op, args);
  ASSERT_NE(y, nullptr);
  y->producer()->epilogue = {{after}};
  if (after == "clip") y->producer()->epilogue = {{after, -0.5f, 2}};
  if (c.part == "addend") {
    Tensor addend = g.random(y->type.shape());
    addend.mut<float>()[7] = odd;
    y->producer()->set_input("addend", {g.input_of(addend)});
  }
  const Run r = expect_same_by(c.kernel, g, y);
  int64_t finite = 0;
  for (float v : r.outputs[0].as<float>()) finite += std::isfinite(v);
  EXPECT_GT(finite, 0);
}

/// Padding times a weight that is not finite is NaN.
TEST(OneDnn, PadsOddWeights) {
  struct Case {
    std::string_view kernel;
    Shape x, weight;
    bool constant = true;
    int groups = 1;
  };
  const Case cases[] = {{"cpu.conv.onednn", {2, 32, 6, 7}, {32, 32, 3, 3}},
                        {"cpu.conv.onednn", {1, 3, 9, 9}, {20, 3, 3, 3}},
                        {"cpu.conv.onednn", {1, 16, 5, 5, 5}, {16, 16, 3, 3, 3}},
                        {"cpu.conv.onednn", {2, 32, 20}, {48, 32, 5}},
                        {"cpu.conv.onednn", {1, 32, 9, 9}, {64, 16, 3, 3}, true, 2},
                        {"cpu.conv.onednn_rows", {1, 5, 9, 9}, {6, 5, 3, 3}},
                        {"cpu.conv.onednn_last", {1, 32, 9, 9}, {32, 32, 3, 3}},
                        {"cpu.conv.onednn_rows", {1, 5, 9, 9}, {6, 5, 3, 3}, false}};
  for (const Case& c : cases)
    for (const float odd : {std::numeric_limits<float>::infinity(), std::nanf("")})
      for (const bool activation : {false, true}) {
        SCOPED_TRACE(cat(c.kernel, " ", c.weight, " ", odd, activation));
        Graph g;
        Tensor weight = g.random(c.weight);
        weight.mut<float>()[0] = weight.mut<float>()[static_cast<size_t>(c.weight.count() - 1)] = odd;
        std::vector<NamedArg> args{{"x", g.input(c.x)}, {"pad_type", "same"}, {"groups", c.groups}};
        args.emplace_back("strides", Tensor::i32(std::vector<int64_t>(static_cast<size_t>(c.x.rank() - 2), 2)));
        if (c.constant)
          args.emplace_back("weight", weight);
        else
          args.emplace_back("weight", g.input_of(weight));
        Value* y = g.op("conv", args);
        ASSERT_NE(y, nullptr);
        if (activation) y->producer()->epilogue = {{"relu"}};
        expect_same_by(c.kernel, g, y);
      }
}

/// oneDNN's own post-ops turn NaN into numbers: relu(NaN) would be 0.
TEST(OneDnn, KeepsNaNBeforeActivations) {
  const OddCase cases[] = {
      {"cpu.conv.onednn", "conv", {1, 32, 12, 12}, {32, 32, 3, 3}, "x"},
      {"cpu.conv.onednn", "conv", {1, 32, 12, 12}, {32, 32, 3, 3}, "weight"},
      {"cpu.conv.onednn", "conv", {1, 32, 12, 12}, {32, 32, 3, 3}, "addend"},
      {"cpu.conv.onednn", "conv", {1, 35, 9, 9}, {21, 35, 3, 3}, "x"},
      {"cpu.conv.onednn", "conv", {1, 3, 30, 30}, {24, 3, 3, 3}, "x"},
      {"cpu.conv.onednn", "conv", {3, 32, 50}, {32, 32, 5}, "x"},
      {"cpu.conv.onednn", "conv", {1, 16, 6, 6, 6}, {16, 16, 3, 3, 3}, "x"},
      {"cpu.conv.onednn_rows", "conv", {1, 32, 12, 12}, {32, 32, 3, 3}, "x"},
      {"cpu.conv.onednn_last", "conv", {1, 32, 12, 12}, {32, 32, 3, 3}, "x"},
      {"cpu.conv.onednn_rows", "conv", {1, 16, 12, 12}, {16, 16, 3, 3}, "weight", false},
      {"cpu.conv_transpose.onednn", "conv_transpose", {1, 32, 12, 12}, {32, 32, 3, 3}, "x"},
      {"cpu.avg_pool.onednn", "avg_pool", {1, 32, 13, 13}, {1}, "x"},
  };
  const float inf = std::numeric_limits<float>::infinity();
  for (const OddCase& c : cases)
    for (float odd : {std::nanf(""), inf, -inf})
      for (const char* after : {"relu", "clip", "moka_hard_swish", "sigmoid", "exp"}) check_odd(c, odd, after);
}

/// The order of oneDNN's sums depends on the sizes of its matrices.
TEST(OneDnn, BitsDoNotDependOnThreads) {
  struct Case {
    Shape x, weight;
    std::vector<int64_t> pad, strides;
  };
  const Case cases[] = {{{1, 16, 47, 45}, {48, 16, 1, 1}, {1, 0, 0, 0}, {2, 1}},
                        {{1, 65, 51, 21}, {69, 65, 1, 1}, {2, 0, 0, 1}, {2, 1}},
                        {{3, 50, 7, 7, 7}, {2, 50, 3, 3, 3}, {2, 1, 1, 1, 0, 2}, {2, 1, 1}},
                        {{1, 31, 679}, {66, 31, 1}, {1, 0}, {1}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(cat(c.x, " ", c.weight));
    Graph g;
    Value* y = g.op("conv", {{"x", g.input(c.x)},
                             {"weight", g.random(c.weight)},
                             {"pad_type", "custom"},
                             {"pad", Tensor::i32(c.pad)},
                             {"strides", Tensor::i32(c.strides)}});
    g.threads = 1;
    const auto one = expect_same_by("cpu.conv.onednn", g, y);
    ASSERT_EQ(one.outputs.size(), 1u);
    const auto want = one.outputs[0].as<float>();
    for (g.threads = 2; g.threads <= 4; g.threads++) {
      const auto more = run_by("cpu.conv.onednn", g, y);
      ASSERT_EQ(more.outputs.size(), 1u);
      const auto got = more.outputs[0].as<float>();
      EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin(), got.end())) << g.threads << " threads";
    }
  }
}

}  // namespace
}  // namespace moka::devices_test
