// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "conformance/network_util.h"

namespace moka::conformance {
namespace {

using ir::Tensor;

constexpr int kNetworks = 120;

/// Random networks give the same results in every column. With MOKA_PRINT_NETWORKS they are only printed, for
/// tests/python/onnx_judge.py.
TEST(Networks, ColumnsAgree) {
  const RandomPrograms programs(kNetworks);
  int wrong = 0;
  for (int i = 0; i < programs.count && wrong < programs.kMostWrong; ++i) {
    SeededChoices choices(cat(programs.seed, "network ", i));
    const Case c = random_network(choices);
    if (std::getenv("MOKA_PRINT_NETWORKS") != nullptr) {
      std::puts(c.program.c_str());
      continue;
    }
    const std::string differs = network_disagreement(c);
    EXPECT_EQ(differs, "") << "network " << i << "\n" << c.program;
    wrong += !differs.empty();
  }
}

/// `a` is a part of the concat `y`, and `b` reads it too. A device must not merge `a` into `b` when `y` belongs to a
/// later region. Columns with cuts choose each operation's device by its name, so some of these programs have such
/// regions.
TEST(Networks, PartsOfEarlierRegions) {
  constexpr int kCuts = 48;
  for (int i = 0; i < kCuts; ++i) {
    const auto named = [&](std::string_view name) { return cat("[name = string(\"", name, i, "\")];\n"); };
    Case c;
    c.program = cat("program(1.3)\n{\n func main<ios18>(tensor<fp32, [1, 4]> x) {\n",                             //
                    "tensor<fp32, [1, 4]> a = abs(x = x)", named("a"),                                            //
                    "tensor<fp32, [1, 4]> b = add(x = a, y = tensor<fp32, [1, 4]>([[1, 2, 3, 4]]))", named("b"),  //
                    "tensor<fp32, [1, 4]> h = exp(x = b)", named("h"),                                            //
                    "tensor<fp32, [2, 4]> y = concat(axis = int32(0), interleave = bool(false), values = (a, h))",
                    named("y"), " } -> (y, b);\n}\n");
    c.inputs = {{"x", Tensor::f32({1, 4}, std::vector<float>{0.5f, -1, 2, -3})}};
    EXPECT_EQ(network_disagreement(c), "") << c.program;
  }
}

}  // namespace
}  // namespace moka::conformance
