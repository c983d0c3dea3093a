#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

class Recurrent : public testing::Test {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }
};

constexpr int kSteps = 4, kBatch = 3, kInputs = 20, kHidden = 35;

TEST_F(Recurrent, LstmInAllDirections) {
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    const bool both = std::string_view(direction) == "bidirectional";
    for (bool all : {false, true}) {
      Region g;
      const int64_t width = (both ? 2 : 1) * kHidden;
      auto weights = [&](Shape s) { return g.constant(g.random(s, -0.4f, 0.4f)); };
      std::vector<NamedArg> args = {{"x", g.input({kSteps, kBatch, kInputs})},
                                    {"initial_h", g.input({kBatch, width})},
                                    {"initial_c", g.input({kBatch, width})},
                                    {"weight_ih", weights({4 * kHidden, kInputs})},
                                    {"weight_hh", weights({4 * kHidden, kHidden})},
                                    {"direction", direction},
                                    {"output_sequence", all}};
      if (all) args.push_back({"bias", weights({4 * kHidden})});
      if (!all) args.push_back({"peephole", weights({3 * kHidden})});
      if (!all) args.push_back({"clip", 0.5f});
      if (both) {
        args.push_back({"weight_ih_back", weights({4 * kHidden, kInputs})});
        args.push_back({"weight_hh_back", weights({4 * kHidden, kHidden})});
        args.push_back({"bias_back", weights({4 * kHidden})});
      }
      g.expect_same(g.ops("lstm", std::move(args)));
    }
  }
}

TEST_F(Recurrent, GruResetsBeforeAndAfterTheProduct) {
  for (bool after : {false, true}) {
    for (const char* direction : {"forward", "reverse"}) {
      Region g(false, Opset::ios18);
      auto weights = [&](Shape s) { return g.constant(g.random(s, -0.4f, 0.4f)); };
      g.expect_same(g.ops("gru", {{"x", g.input({kSteps, kBatch, kInputs})},
                                  {"initial_h", g.input({kBatch, kHidden})},
                                  {"weight_ih", weights({3 * kHidden, kInputs})},
                                  {"weight_hh", weights({3 * kHidden, kHidden})},
                                  {"bias", weights({3 * kHidden})},
                                  {"input_bias", weights({3 * kHidden})},
                                  {"reset_after", after},
                                  {"direction", direction},
                                  {"output_sequence", after},
                                  {"recurrent_activation", "hard_sigmoid"}}));
    }
  }
}

TEST_F(Recurrent, PlainOnes) {
  for (bool all : {false, true}) {
    Region g;
    auto weights = [&](Shape s) { return g.constant(g.random(s, -0.4f, 0.4f)); };
    g.expect_same(g.ops("rnn", {{"x", g.input({kSteps, 1, kInputs})},
                                {"initial_h", g.input({1, kHidden})},
                                {"weight_ih", weights({kHidden, kInputs})},
                                {"weight_hh", weights({kHidden, kHidden})},
                                {"bias", weights({kHidden})},
                                {"output_sequence", all},
                                {"activation", all ? "relu" : "tanh"}}));
  }
}

}  // namespace
}  // namespace moka::vulkan_test
