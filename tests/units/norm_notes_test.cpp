// SPDX-License-Identifier: Apache-2.0
// Explaining a plan names the batch norms that a GPU computes in dispatches of their own.
#include <vector>

#include "api/api_util.h"
#include "moka/program.h"
#include "units/vulkan_driver.h"

namespace moka::test {
namespace {

std::string remarks_of(bool is_read_twice) {
  ProgramBuilder b;
  const auto x = b.input("x", DataType::float32, {1, 8, 6, 6});
  const MultiArray weight = MultiArray::of(std::vector(16 * 8 * 9, 0.01f), {16, 8, 3, 3});
  const auto conv = b.op("conv", {{"x", x}, {"weight", weight}, {"pad_type", "same"}});
  const auto active = b.op("relu", {{"x", conv}});
  const auto numbers = [](float v) { return MultiArray::of(std::vector(16, v), {16}); };
  const auto norm = b.op("batch_norm", {{"x", active}, {"mean", numbers(0.5f)}, {"variance", numbers(2)}}, "the_norm");
  b.output(b.op("max_pool", {{"x", norm}, {"kernel_sizes", std::vector<int32_t>{2, 2}}, {"pad_type", "valid"}}), "y");
  if (is_read_twice)
    b.output(b.op("avg_pool", {{"x", active}, {"kernel_sizes", std::vector<int32_t>{2, 2}}, {"pad_type", "valid"}}),
             "z");
  ModelConfiguration c;
  c.rates = "off";
  c.device = "vulkan";
  std::string out;
  for (const PassRemark& r : b.build(c).compute_plan().remarks)
    if (r.pass == "batch norms") out += r.text;
  return out;
}

}  // namespace

TEST(NormNotes, NameDispatchesOfTheirOwn) {
  if (!has_vulkan_driver()) GTEST_SKIP() << "this machine has no driver for vulkan";
  EXPECT_EQ(remarks_of(false), "");
  EXPECT_EQ(remarks_of(true), "the_norm on vulkan: a dispatch of its own: others read its input, too");
}

}  // namespace moka::test
