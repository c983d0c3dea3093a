// SPDX-License-Identifier: Apache-2.0
#include "api/api_util.h"

namespace moka::test {
namespace {

/// "[[...], [...]]" with numbers that repeat after 17.
std::string literal(std::vector<int> shape, int& next) {
  const int n = shape.front();
  shape.erase(shape.begin());
  std::string out = "[";
  for (int i = 0; i < n; i++) {
    if (i > 0) out += ", ";
    out += shape.empty() ? std::to_string(next++ % 17 - 8) + ".0" : literal(shape, next);
  }
  return out + "]";
}

/// The memory that a plan reports, with packed weights and with weights as the file stores them.
TEST(Memory, LowMemoryPacksNothing) {
  int next = 0;
  const std::string text =
      program("tensor<fp32, [1, 32, 20, 20]> x",
              "tensor<fp32, [1, 32, 20, 20]> y = conv(x = x, weight = tensor<fp32, [32, 32, 3, 3]>(" +
                  literal({32, 32, 3, 3}, next) + "), pad_type = string(\"same\"))[name = string(\"y\")];",
              "y");
  ModelConfiguration c;
  c.threads = 1;
  const Model plain = Model::from_mil(text, c);
  c.low_memory = true;
  const Model low = Model::from_mil(text, c);
  const Features in = random_inputs(plain.function(), 3);
  const auto expected = values(plain.predict(in).array("y")), got = values(low.predict(in).array("y"));
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); i++) ASSERT_NEAR(got[i], expected[i], 1e-2) << i;  // sums of up to 1500
  const MemoryUse more = plain.compute_plan(in).memory, less = low.compute_plan(in).memory;
  EXPECT_GE(more.packed, size_t{32 * 32 * 9 * 4});
  EXPECT_EQ(less.packed, 0u);
  for (const MemoryUse& m : {more, less}) {
    EXPECT_GT(m.arenas, 0u);
    EXPECT_EQ(m.total(), m.mapped + m.packed + m.constants + m.arenas + m.heap);
  }
}

}  // namespace
}  // namespace moka::test
