// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/spirv.h"

#include <random>

#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using devices::vulkan::Features;
using devices::vulkan::find_shader;
using devices::vulkan::refusal_of_spirv;

Features all_features() {
  Features f;
  f.half = f.half_storage = f.byte_storage = f.int8 = f.subgroup_arithmetic = true;
  f.max_invocations = 1024;
  return f;
}

TEST(Spirv, AcceptsTheProjectsOwnShaders) {
  for (const auto& shader : devices::vulkan::shaders())
    EXPECT_EQ(refusal_of_spirv(shader.code, shader.bindings, all_features()), "") << shader.name;
}

TEST(Spirv, RefusesWhatADriverHasNot) {
  const auto* half = find_shader("cast_f16_f32");
  ASSERT_NE(half, nullptr);
  Features f = all_features();
  f.half_storage = false;
  EXPECT_EQ(refusal_of_spirv(half->code, half->bindings, f),
            "a shader with SPIR-V's capability 4433, which is not switched on");
  f = all_features();
  f.max_invocations = 128;
  EXPECT_EQ(refusal_of_spirv(half->code, half->bindings, f),
            "a workgroup of 256 x 1 x 1 invocations, above maxComputeWorkGroupInvocations");
  EXPECT_EQ(refusal_of_spirv(half->code, 1, all_features()),
            "a shader with binding 1 of set 0; there are 1 buffers of set 0");
}

TEST(Spirv, ReadsDamagedCodeWithinItsBounds) {
  const auto* shader = find_shader("binary_f32");
  ASSERT_NE(shader, nullptr);
  for (size_t n = 0; n < shader->code.size(); n++) {
    // Memory of its own, so that a sanitizer sees what is read behind the end.
    const std::vector<uint32_t> cut(shader->code.begin(), shader->code.begin() + static_cast<std::ptrdiff_t>(n));
    const std::string why = refusal_of_spirv(cut, shader->bindings, all_features());
    if (n < 5) {
      EXPECT_EQ(why, "a shader that is not SPIR-V") << n;
    }
  }
  std::mt19937 random(1);
  for (int k = 0; k < 20000; k++) {
    std::vector<uint32_t> code(shader->code.begin(), shader->code.begin() + 400);
    for (int j = 0; j < 3; j++) code[5 + random() % 395] = random() % 4 == 0 ? random() : random() % 0x00080050;
    refusal_of_spirv(code, shader->bindings, all_features());
  }
}

TEST(Spirv, EqualCodeIsOneShader) {
  const auto* shader = find_shader("binary_f32");
  ASSERT_NE(shader, nullptr);
  const std::vector<uint32_t> copy(shader->code.begin(), shader->code.end());
  const auto& a = devices::vulkan::lasting_shader(shader->code, 3);
  EXPECT_EQ(&a, &devices::vulkan::lasting_shader(copy, 3));
  EXPECT_NE(&a, &devices::vulkan::lasting_shader(copy, 4));
  EXPECT_FALSE(a.has_starts);
}

TEST(Glsl, NamesWhatTheCompilerFinds) {
  const auto made = devices::vulkan::compile_glsl("#version 450\nvoid main() { nonsense; }\n");
  ASSERT_FALSE(made.ok());
  if (made.error().code() == ErrorCode::unsupported) GTEST_SKIP() << made.error().message();
  EXPECT_EQ(made.error().code(), ErrorCode::malformed);
  EXPECT_NE(made.error().message().find("nonsense"), std::string::npos) << made.error().message();
}

TEST(Glsl, WithoutACompilerIsSaidSo) {
  ASSERT_EQ(setenv("MOKA_GLSLANG", "/nonexistent/compiler", 1), 0);
  const auto made = devices::vulkan::compile_glsl("#version 450\nvoid main() { }\n");
  unsetenv("MOKA_GLSLANG");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(), "a shader in GLSL without the program glslangValidator");
}

}  // namespace
}  // namespace moka::vulkan_test
