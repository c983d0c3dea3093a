// SPDX-License-Identifier: Apache-2.0
#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

/// The parameter is the number of hidden units.
class Recurrent : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }
};
// An odd number, and one of whole fours.
INSTANTIATE_TEST_SUITE_P(Vulkan, Recurrent, testing::Values(35, 36));

constexpr int kSteps = 4, kBatch = 3, kInputs = 20;

TEST_P(Recurrent, LstmInAllDirections) {
  const int64_t hidden = GetParam();
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    const bool both = std::string_view(direction) == "bidirectional";
    for (bool all : {false, true}) {
      Region g;
      const int64_t width = (both ? 2 : 1) * hidden;
      auto weights = [&](Shape s) { return g.constant(g.random(s, -0.4f, 0.4f)); };
      std::vector<NamedArg> args = {{"x", g.input({kSteps, kBatch, kInputs})},
                                    {"initial_h", g.input({kBatch, width})},
                                    {"initial_c", g.input({kBatch, width})},
                                    {"weight_ih", weights({4 * hidden, kInputs})},
                                    {"weight_hh", weights({4 * hidden, hidden})},
                                    {"direction", direction},
                                    {"output_sequence", all}};
      if (all) args.push_back({"bias", weights({4 * hidden})});
      if (!all) args.push_back({"peephole", weights({3 * hidden})});
      if (!all) args.push_back({"clip", 0.5f});
      if (both) {
        args.push_back({"weight_ih_back", weights({4 * hidden, kInputs})});
        args.push_back({"weight_hh_back", weights({4 * hidden, hidden})});
        args.push_back({"bias_back", weights({4 * hidden})});
      }
      g.expect_same(g.ops("lstm", std::move(args)));
    }
  }
}

TEST_P(Recurrent, GruResetsBeforeAndAfterTheProduct) {
  const int64_t hidden = GetParam();
  for (bool after : {false, true}) {
    for (const char* direction : {"forward", "reverse"}) {
      Region g(false, Opset::ios18);
      auto weights = [&](Shape s) { return g.constant(g.random(s, -0.4f, 0.4f)); };
      g.expect_same(g.ops("gru", {{"x", g.input({kSteps, kBatch, kInputs})},
                                  {"initial_h", g.input({kBatch, hidden})},
                                  {"weight_ih", weights({3 * hidden, kInputs})},
                                  {"weight_hh", weights({3 * hidden, hidden})},
                                  {"bias", weights({3 * hidden})},
                                  {"input_bias", weights({3 * hidden})},
                                  {"reset_after", after},
                                  {"direction", direction},
                                  {"output_sequence", after},
                                  {"recurrent_activation", "hard_sigmoid"}}));
    }
  }
}

TEST_P(Recurrent, PlainOnes) {
  const int64_t hidden = GetParam();
  for (bool all : {false, true}) {
    Region g;
    auto weights = [&](Shape s) { return g.constant(g.random(s, -0.4f, 0.4f)); };
    g.expect_same(g.ops("rnn", {{"x", g.input({kSteps, 1, kInputs})},
                                {"initial_h", g.input({1, hidden})},
                                {"weight_ih", weights({hidden, kInputs})},
                                {"weight_hh", weights({hidden, hidden})},
                                {"bias", weights({hidden})},
                                {"output_sequence", all},
                                {"activation", all ? "relu" : "tanh"}}));
  }
}

}  // namespace
}  // namespace moka::vulkan_test
