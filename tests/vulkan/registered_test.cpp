// SPDX-License-Identifier: Apache-2.0
#include "ir/registered.h"

#include <cmath>
#include <cstring>

#include "devices/gpu/numbers.inc"
#include "devices/vulkan/shader.h"
#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

/// x * sigmoid(x), with a shader of the project as if it were somebody else's.
class Silu final : public Registered {
 public:
  const std::string& what() const override { return what_; }
  moka::Result<std::vector<Type>> infer(std::span<const Arg> in, std::span<const Type>) const override {
    return std::vector<Type>{*in[0].type};
  }
  moka::Result<RegisteredPlan> plan(std::span<const Type>, std::span<const Type>, int) const override {
    return RegisteredPlan{};
  }
  Status run(const RegisteredCall& call) const override {
    for (int64_t i = 0; i < call.in[0].count(); i++) {
      const float x = call.in[0].as<float>()[i];
      call.out[0].as<float>()[i] = x / (1 + std::exp(-x));
    }
    return {};
  }
  moka::Result<std::optional<RegisteredShader>> shader(std::span<const Type> in, std::span<const Type>) const override {
    RegisteredShader s;
    const auto code = devices::vulkan::find_shader("unary_f32")->code;
    s.code = {{"spirv", std::string(reinterpret_cast<const char*>(code.data()), code.size_bytes())}};
    s.constants = {F_SILU, F_NONE, F_NONE};
    // The first elements of both buffers, how many there are, and numbers of three functions.
    std::array<uint32_t, 9> words{};
    words[2] = static_cast<uint32_t>(in[0].shape().count());
    s.parameters.resize(sizeof words);
    std::memcpy(s.parameters.data(), words.data(), sizeof words);
    s.groups = {(words[2] + 255) / 256, 1, 1};
    return std::optional(std::move(s));
  }

 private:
  const std::string what_ = "registered operation 'silu'";
};

Value* silu(Region& g, Value* x) {
  return g.op("moka_registered", {{"inputs", std::vector<Value*>{x}},
                                  {"instance", g.constant(registered_handle(std::make_shared<Silu>()))},
                                  {"name", "silu"}});
}

TEST(Registered, RunsInARegion) {
  MOKA_NEEDS_VULKAN();
  Region g;
  const auto r = g.expect_same({g.op("sin", {{"x", silu(g, g.op("exp", {{"x", g.input({3, 300})}}))}})});
  EXPECT_EQ(r.kernels[1], "vulkan.registered");
  EXPECT_EQ(r.counters.dispatches, 3u);
}

TEST(Registered, GetsFloat32FromAFloat16Program) {
  MOKA_NEEDS_VULKAN();
  Region g(true);
  g.expect_same({g.op("square", {{"x", silu(g, g.op("exp", {{"x", g.input({7, 9})}}))}})});
}

}  // namespace
}  // namespace moka::vulkan_test
