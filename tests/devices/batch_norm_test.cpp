// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <random>

#include "devices/graph_util.h"

/// Batch norms with the statistics of the mini-batch, and their gradients.
namespace moka::devices_test {
namespace {

using namespace ir;

struct NormCase {
  Shape shape;
  bool has_gamma, has_beta, is_blocked;
  float middle;

  std::string text() const {
    return cat(shape, has_gamma ? ", gamma" : "", has_beta ? ", beta" : "", is_blocked ? ", blocked" : "", ", around ",
               middle);
  }
};

/// A convolution of the same channels stores its result in blocks of them.
Value* blocked_value(Graph& g, const NormCase& c) {
  Shape weights{c.shape[1], c.shape[1]};
  for (int i = 2; i < c.shape.rank(); i++) weights.push_back(1);
  return g.op("conv", {{"x", g.input(c.shape)},
                       {"weight", g.random(weights)},
                       {"bias", g.random({c.shape[1]}, c.middle - 1, c.middle + 1)}});
}

std::vector<Value*> norm_of(Graph& g, const NormCase& c) {
  Value* const x = c.is_blocked ? blocked_value(g, c) : g.input(c.shape, c.middle - 1, c.middle + 1);
  const Shape channels{c.shape[1]};
  std::vector<NamedArg> args{{"x", x}};
  Value* gamma = g.input(channels);
  if (c.has_gamma) args.emplace_back("gamma", gamma);
  if (c.has_beta) args.emplace_back("beta", g.input(channels));
  std::vector<Value*> out = g.ops("moka_batch_norm_training", std::move(args));
  std::vector<NamedArg> more{{"x", x}, {"dy", g.input(c.shape)}, {"mean", out[1]}, {"variance", out[2]}};
  if (c.has_gamma) more.emplace_back("gamma", gamma);
  const std::vector<Value*> gradients = g.ops("moka_batch_norm_training_gradient", std::move(more));
  out.insert(out.end(), gradients.begin(), gradients.end());
  return out;
}

void check_norm(const NormCase& c, unsigned seed) {
  SCOPED_TRACE(c.text());
  Graph g(Opset::ios17, seed);
  const std::vector<Value*> outputs = norm_of(g, c);
  std::vector<Run> runs;
  for (g.threads = 1; g.threads <= 3; g.threads++) {
    runs.push_back(expect_same(g, outputs));
    for (size_t i = 0; i < outputs.size(); i++) {
      const Tensor &a = runs[0].outputs[i], &b = runs.back().outputs[i];
      EXPECT_EQ(0, memcmp(a.data(), b.data(), a.bytes())) << "output " << i << ", " << g.threads << " threads";
    }
  }
}

TEST(BatchNorm, RandomCases) {
  std::mt19937 bits(9);
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(bits); };
  for (unsigned i = 0; i < 120; i++) {
    NormCase c{{draw(2, 9), draw(1, 70)}, draw(0, 1) == 1, draw(0, 1) == 1, false, draw(0, 1) == 1 ? 0.0f : 9.0f};
    for (int64_t k = draw(0, 3); k > 0; k--) c.shape.push_back(draw(1, 13));
    c.is_blocked = c.shape.rank() > 2 && draw(0, 1) == 1;
    check_norm(c, i);
  }
}

}  // namespace
}  // namespace moka::devices_test
