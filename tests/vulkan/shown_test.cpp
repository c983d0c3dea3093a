// SPDX-License-Identifier: Apache-2.0
// What a submission tells of its commands, and what shaders tell of themselves.
#include "devices/vulkan/reflection.h"
#include "devices/vulkan/shader.h"
#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

TEST(Shown, CommandsAreThoseThatAreSubmitted) {
  MOKA_NEEDS_VULKAN();
  Region g;
  g.show();
  Value* x = g.input({4, 33});
  Value* y = g.op("softmax", {{"x", g.op("exp", {{"x", x}})}, {"axis", 1}});
  const Region::Result r = g.run({y, g.op("reduce_sum", {{"x", y}, {"axes", Tensor::i32({0})}, {"keep_dims", false}})});
  ASSERT_EQ(r.refusal, "");
  ASSERT_EQ(r.shown.size(), r.counters.dispatches + r.counters.copies);
  size_t waits = 0;
  for (const kernel::ShownCommand& c : r.shown) {
    waits += c.waits;
    if (c.kind == kernel::ShownCommand::Kind::copy) continue;
    EXPECT_FALSE(c.steps.empty()) << c.code;
    EXPECT_GT(c.group_size[0], 0u) << c.code;
    for (const kernel::BoundBuffer& b : c.buffers) {
      EXPECT_FALSE(b.name.empty()) << c.code;
      EXPECT_NE(b.element, DType::none) << c.code;
      EXPECT_LE(b.offset + b.bytes, b.buffer->bytes()) << c.code;
    }
  }
  EXPECT_EQ(waits, r.counters.barriers);
  if (r.times.empty()) GTEST_SKIP() << "this queue has no timestamps";
  ASSERT_EQ(r.times.size(), r.shown.size());
  for (size_t i = 0; i < r.times.size(); i++) {
    EXPECT_LE(r.times[i].from, r.times[i].to);
    if (i > 0) EXPECT_EQ(r.times[i].from, r.times[i - 1].to);
  }
}

TEST(Shown, OthersTellNothing) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.input({8});
  const Region::Result r = g.run({g.op("exp", {{"x", x}})});
  EXPECT_TRUE(r.shown.empty());
  EXPECT_TRUE(r.times.empty());
}

TEST(Shown, EveryShaderNamesItsBuffersAndParameters) {
  for (const devices::vulkan::Shader& s : devices::vulkan::shaders()) {
    SCOPED_TRACE(s.name);
    const devices::gpu::CodeFacts facts = devices::vulkan::facts_of_spirv(s.code);
    EXPECT_TRUE(facts.group[0] > 0 || facts.group_constants[0] >= 0);
    EXPECT_FALSE(facts.parameters.empty());
    ASSERT_LE(facts.bindings.size(), static_cast<size_t>(s.bindings));
    for (const auto& c : facts.constants) EXPECT_FALSE(c.name.empty()) << c.at;
    for (size_t i = 0; i < facts.parameters.size(); i++) {
      EXPECT_FALSE(facts.parameters[i].name.empty()) << i;
      EXPECT_LT(facts.parameters[i].at, devices::gpu::kMostParameterBytes);
    }
    for (const auto& b : facts.bindings)
      if (!b.name.empty()) EXPECT_NE(b.element, DType::none) << b.name;
  }
}

TEST(Shown, DamagedCodeTellsLess) {
  for (const devices::vulkan::Shader& s : devices::vulkan::shaders()) {
    if (s.name != "conv_block_f32") continue;
    for (size_t words = 0; words < std::min<size_t>(s.code.size(), 900); words++)
      (void)devices::vulkan::facts_of_spirv(s.code.first(words));
    std::vector<uint32_t> code(s.code.begin(), s.code.end());
    for (size_t i = 5; i < std::min<size_t>(code.size(), 900); i++) {
      const uint32_t before = std::exchange(code[i], 0xffffffffu);
      (void)devices::vulkan::facts_of_spirv(code);
      code[i] = before;
    }
  }
}

}  // namespace
}  // namespace moka::vulkan_test
