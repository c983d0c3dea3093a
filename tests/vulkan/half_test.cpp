// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "devices/gpu/common/common.h"
#include "devices/vulkan/shader.h"
#include "temporary_folder.h"
#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

/// The bytes of results of float16 programs that use tiles.
std::string results() {
  std::string bytes;
  const auto add = [&](Region& g, Value* y) {
    for (const Tensor& t : g.expect_same({y}).got) bytes.append(static_cast<const char*>(t.data()), t.bytes());
  };
  {
    Region g(true);
    add(g, g.op("matmul", {{"x", g.input({70, 90})}, {"y", g.input({90, 65})}}));
  }
  {
    Region g(true);
    add(g, g.op("linear", {{"x", g.input({40, 48})},
                           {"weight", g.constant(g.random({72, 48}))},
                           {"bias", g.constant(g.random({72}))}}));
  }
  {
    Region g(true);
    add(g, g.op("conv", {{"x", g.input({1, 20, 12, 13})}, {"weight", g.constant(g.random({24, 20, 3, 3}))}}));
  }
  {
    Region g(true);
    add(g,
        g.op("conv_transpose",
             {{"x", g.input({1, 8, 7, 6})}, {"weight", g.constant(g.random({8, 12, 3, 3}))}, {"strides", Ints{2, 2}}}));
  }
  {
    Region g(true, Opset::ios18);
    add(g, g.op("scaled_dot_product_attention",
                {{"query", g.input({2, 20, 40})}, {"key", g.input({2, 70, 40})}, {"value", g.input({2, 70, 24})}}));
  }
  return bytes;
}

/// Also what the test below runs in processes of its own.
TEST(Half, TilesOfFloat16) {
  MOKA_NEEDS_VULKAN();
  const std::string bytes = results();
  EXPECT_FALSE(bytes.empty());
  if (const char* to = std::getenv("MOKA_TEST_RESULTS")) std::ofstream(to, std::ios::binary) << bytes;
}

TEST(Half, ShadersWithItAreChosenWhereTheDriverHasIt) {
  MOKA_NEEDS_VULKAN();
  using devices::gpu::Element;
  using devices::gpu::tile_shader_name;
  const bool half = devices::vulkan::Context::probe()->half;
  for (const char* stem : {"attention", "conv", "conv_transpose", "matmul"}) {
    EXPECT_EQ(tile_shader_name(card(), stem, Element::f16, Element::f16), cat(stem, half ? "_h16" : "_f16"));
    EXPECT_EQ(tile_shader_name(card(), stem, Element::f32, Element::f32), cat(stem, "_f32"));
    EXPECT_EQ(tile_shader_name(card(), stem, Element::f32, Element::f16), cat(stem, "_f32_f16"));
    EXPECT_NE(devices::vulkan::find_shader(cat(stem, "_h16")), nullptr);
  }
}

TEST(Half, ArithmeticOfTheDriverKeepsTheBits) {
  MOKA_NEEDS_VULKAN();
  if (!devices::vulkan::Context::probe()->half) GTEST_SKIP() << "the driver has no shaderFloat16";
  const test::TemporaryFolder folder;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> bytes;
  for (const char* half : {"1", "0"}) {
    const std::string to = (folder / half).string();
    // In new processes, because a device is opened only once.
    const std::string command =
        cat("MOKA_VULKAN_HALF=", half, " MOKA_TEST_RESULTS=", to, " ", self, " --gtest_filter=Half.Tiles* >/dev/null");
    ASSERT_EQ(std::system(command.c_str()), 0) << half;
    std::ifstream file(to, std::ios::binary);
    bytes.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  EXPECT_FALSE(bytes[0].empty());
  EXPECT_EQ(bytes[0], bytes[1]);
}

}  // namespace
}  // namespace moka::vulkan_test
