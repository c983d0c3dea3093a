// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "api/api_util.h"
#include "moka/custom.h"
#include "moka/plugin.h"
#include "units/vulkan_driver.h"

#ifdef MOKA_TEST_SHADERS
#include <units_shaders/mix.inc>
#include <units_shaders/swish.inc>

/// Registered operations that bring a GPU shader.
namespace moka::test {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

const char* const kSwishSource = R"(#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < uint(y.length())) y[i] = x[i] / (1.0 + exp(-x[i]));
})";

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

std::vector<uint32_t> swish_words() { return {std::begin(swish_spirv), std::end(swish_spirv)}; }
ShaderCode swish() { return ShaderCode::spirv(swish_spirv); }

class Swish final : public CustomLayer {
 public:
  explicit Swish(std::optional<LayerShader> shader) : shader_(std::move(shader)) {}
  void evaluate(const LayerCall& call) const override {
    const auto x = call.inputs[0].as<const float>();
    const auto y = call.outputs[0].as<float>();
    for (size_t i = 0; i < x.size(); i++) y[i] = x[i] / (1 + std::exp(-x[i]));
  }
  std::optional<LayerShader> shader(const Shapes& in) const override {
    auto s = shader_;
    if (s) s->groups[0] *= static_cast<uint32_t>((count_of(in[0]) + 63) / 64);
    return s;
  }

 private:
  std::optional<LayerShader> shader_;
};

/// Registers my_swish while it lives.
class SwishOperation {
 public:
  explicit SwishOperation(std::optional<LayerShader> shader) {
    register_operation("my_swish", [shader](const LayerInfo&) { return std::make_unique<Swish>(shader); });
  }
  ~SwishOperation() { unregister_operation("my_swish"); }
};

ModelConfiguration on_vulkan() {
  ModelConfiguration c;
  c.device = "vulkan";
  c.rates = "off";
  return c;
}

/// A line of a program that makes `to` of type fp32[shape].
std::string line(const std::string& shape, const std::string& to, const std::string& call) {
  return "tensor<fp32, [" + shape + "]> " + to + " = " + call + "[name = string(\"" + to + "\")];\n";
}

const std::string kBetween = program(
    "tensor<fp32, [3, 50]> x",
    line("3, 50", "a", "exp(x = x)") + line("3, 50", "b", "my_swish(x = a)") + line("3, 50", "y", "sin(x = b)"), "y");

Features noise_for(const Model& m) { return m.random_inputs({}); }

void expect_near(const MultiArray& got, const MultiArray& expected, double tolerance = 1e-5) {
  const auto a = values(got), b = values(expected);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); i++) ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::fabs(b[i]))) << i;
}

/// The step of the registered operation.
PlannedOperation registered(const ComputePlan& plan) {
  for (const PlannedOperation& o : plan.operations)
    if (o.type == "moka_registered" || o.name == "b") return o;
  return {};
}

std::string refusal_of_vulkan(const ComputePlan& plan) {
  for (const UnitBid& b : registered(plan).bids)
    if (b.device == "vulkan") return b.refusal;
  return "not asked";
}

TEST(Shaders, ARegionGoesOnThroughALayerWithOne) {
  MOKA_NEEDS_VULKAN_DRIVER();
  const SwishOperation operation(LayerShader{.code = {swish()}});
  const Model gpu = Model::from_mil(kBetween, on_vulkan()), cpu = Model::from_mil(kBetween);
  const ComputePlan plan = gpu.compute_plan();
  ASSERT_EQ(plan.regions.size(), 1u);
  EXPECT_EQ(plan.regions[0].operations, 3u);
  EXPECT_EQ(registered(plan).kernel, "vulkan.registered");
  EXPECT_EQ(registered(plan).note, "registered operation 'my_swish'");
  const Features in = noise_for(gpu);
  expect_near(gpu.predict(in).array("y"), cpu.predict(in).array("y"));
}

TEST(Shaders, ARegionEndsBeforeALayerWithoutOne) {
  MOKA_NEEDS_VULKAN_DRIVER();
  const SwishOperation operation(std::nullopt);
  const Model gpu = Model::from_mil(kBetween, on_vulkan()), cpu = Model::from_mil(kBetween);
  const ComputePlan plan = gpu.compute_plan();
  EXPECT_EQ(plan.regions.size(), 2u);
  EXPECT_EQ(registered(plan).device, "cpu");
  EXPECT_EQ(refusal_of_vulkan(plan), "vulkan.registered: registered operation 'my_swish' without a shader");
  const Features in = noise_for(gpu);
  expect_near(gpu.predict(in).array("y"), cpu.predict(in).array("y"));
}

TEST(Shaders, InGlslWhereItsCompilerIsInstalled) {
  MOKA_NEEDS_VULKAN_DRIVER();
  const SwishOperation operation(LayerShader{.code = {ShaderCode::glsl(kSwishSource)}});
  const Model gpu = Model::from_mil(kBetween, on_vulkan()), cpu = Model::from_mil(kBetween);
  const ComputePlan plan = gpu.compute_plan();
  const Features in = noise_for(gpu);
  expect_near(gpu.predict(in).array("y"), cpu.predict(in).array("y"));
  if (refusal_of_vulkan(plan) == "vulkan.registered: a shader in GLSL without the program glslangValidator")
    GTEST_SKIP() << "glslangValidator is not installed";
  EXPECT_EQ(plan.regions.size(), 1u);
  EXPECT_EQ(registered(plan).kernel, "vulkan.registered");
}

class Mix final : public CustomLayer {
 public:
  void evaluate(const LayerCall& call) const override {
    const auto a = call.inputs[0].as<const float>();
    const auto b = call.inputs[1].as<const int32_t>();
    for (size_t i = 0; i < a.size(); i++) {
      call.outputs[0].as<float>()[i] = 2.5f * a[i] + static_cast<float>(b[i]) + kTable[i % 3];
      call.outputs[1].as<int32_t>()[i] = b[i] + 1;
    }
  }
  Shapes output_shapes(const Shapes& in) const override { return {in[0], in[0]}; }
  std::optional<LayerShader> shader(const Shapes& in) const override {
    LayerShader s{.code = {ShaderCode::spirv(mix_spirv)}, .constants = {3}, .parameters{}, .groups{}};
    const float scale = 2.5f;
    const auto count = static_cast<uint32_t>(count_of(in[0]));
    s.parameters.resize(8);
    std::memcpy(s.parameters.data(), &scale, 4);
    std::memcpy(s.parameters.data() + 4, &count, 4);
    s.groups = {(count + 31) / 32, 1, 1};
    s.buffers = {MultiArray::of(kTable, {3})};
    return s;
  }

 private:
  static constexpr std::array<float, 3> kTable = {10, 20, 30};
};

TEST(Shaders, HaveConstantsParametersBuffersAndSeveralArrays) {
  MOKA_NEEDS_VULKAN_DRIVER();
  register_operation("mix", [](const LayerInfo&) { return std::make_unique<Mix>(); });
  const std::string text =
      program("tensor<fp32, [7, 9]> x, tensor<int32, [7, 9]> n",
              line("7, 9", "a", "square(x = x)") +
                  "tensor<fp32, [7, 9]> y, tensor<int32, [7, 9]> z = mix(a = a, b = n)[name = string(\"b\")];\n" +
                  line("7, 9", "w", "exp(x = x)"),
              "y, z, w");
  const Model gpu = Model::from_mil(text, on_vulkan()), cpu = Model::from_mil(text);
  unregister_operation("mix");
  EXPECT_EQ(registered(gpu.compute_plan()).kernel, "vulkan.registered") << refusal_of_vulkan(gpu.compute_plan());
  const Features in = noise_for(gpu);
  // The second prediction replays the same region.
  for (int k = 0; k < 2; k++) {
    const Features got = gpu.predict(in), expected = cpu.predict(in);
    expect_near(got.array("y"), expected.array("y"));
    expect_near(got.array("z"), expected.array("z"), 0);
  }
}

TEST(Shaders, ReadAndWritePartsOfOtherArrays) {
  MOKA_NEEDS_VULKAN_DRIVER();
  const SwishOperation operation(LayerShader{.code = {swish()}});
  // Rows of 5 numbers do not begin where a driver lets a binding begin.
  const std::string part =
      program("tensor<fp32, [3, 5]> x",
              line("3, 5", "e", "exp(x = x)") +
                  line("1, 5", "q",
                       "slice_by_index(x = e, begin = tensor<int32, [2]>([1, 0]), end = tensor<int32, [2]>([2, 5]))") +
                  line("1, 5", "b", "my_swish(x = q)") + line("1, 5", "y", "sin(x = b)"),
              "y");
  const std::string joined =
      program("tensor<fp32, [1, 5]> x",
              line("1, 5", "p", "exp(x = x)") + line("1, 5", "b", "my_swish(x = x)") +
                  line("2, 5", "c", "concat(values = (p, b), axis = int32(0), interleave = bool(false))") +
                  line("2, 5", "y", "sin(x = c)"),
              "y");
  for (const std::string& text : {part, joined}) {
    const Model gpu = Model::from_mil(text, on_vulkan()), cpu = Model::from_mil(text);
    EXPECT_EQ(registered(gpu.compute_plan()).kernel, "vulkan.registered");
    const Features in = noise_for(gpu);
    expect_near(gpu.predict(in).array("y"), cpu.predict(in).array("y"));
  }
}

TEST(Shaders, ThatCannotRunLeaveTheLayerToTheCpu) {
  MOKA_NEEDS_VULKAN_DRIVER();
  auto capability = swish_words();
  // OpCapability Shader becomes Float64, the first instruction behind the header.
  ASSERT_EQ(capability[5], (2u << 16) | 17u);
  capability[6] = 10;
  auto cut = swish_words();
  cut.resize(cut.size() / 8);
  constexpr uint32_t kNoShader[] = {1, 2, 3, 4, 5, 6};
  struct Case {
    LayerShader shader;
    std::string refusal;
  };
  const std::vector<Case> cases = {
      {{.code = {ShaderCode::spirv(kNoShader)}}, "a shader that is not SPIR-V"},
      {{.code = {ShaderCode::spirv(cut)}}, "a shader whose SPIR-V is cut off"},
      {{.code = {{"spirv", "words"}}}, "a shader whose SPIR-V is cut off"},
      {{.code = {{"msl", "kernel"}, {"ptx", ".version"}}},
       "a shader of kinds 'msl' and 'ptx'; the device takes 'spirv' and 'glsl'"},
      {{.code = {{"msl", "kernel"}}}, "a shader of kind 'msl'; the device takes 'spirv' and 'glsl'"},
      {{}, "a shader without code"},
      {{.code = {ShaderCode::spirv(capability)}}, "a shader with SPIR-V's capability 10, which is not switched on"},
      {{.code = {swish()}, .parameters = std::vector<std::byte>(132)}, "a shader with 132 bytes of parameters"},
      {{.code = {swish()}, .groups = {0, 1, 1}}, "a shader with 0 workgroups"},
      {{.code = {swish()}, .groups = {1, 1u << 30, 1}}, "groups, more than the device takes"},
      {{.code = {swish()}, .buffers = std::vector<MultiArray>(7, MultiArray::of(std::array{1.0f}, {1}))},
       "a shader with 9 buffers, more than 8"},
      {{.code = {ShaderCode::spirv(mix_spirv)}}, "there are 2 buffers of set 0"},
      {{.code = {ShaderCode::glsl("#version 450\nvoid main() { nonsense; }")}}, "GLSL"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.refusal);
    const SwishOperation operation(c.shader);
    const Model gpu = Model::from_mil(kBetween, on_vulkan());
    const ComputePlan plan = gpu.compute_plan();
    EXPECT_EQ(registered(plan).device, "cpu");
    EXPECT_NE(refusal_of_vulkan(plan).find(c.refusal), std::string::npos) << refusal_of_vulkan(plan);
    EXPECT_FALSE(refusal_of_vulkan(plan).empty());
    const Features in = noise_for(gpu);
    expect_near(gpu.predict(in).array("y"), Model::from_mil(kBetween).predict(in).array("y"));
  }
  ModelConfiguration strict = on_vulkan();
  strict.strict = true;
  const SwishOperation operation(LayerShader{.code = {ShaderCode::spirv(kNoShader)}});
  expect_error(ErrorKind::unsupported, {"device 'vulkan'", "a shader that is not SPIR-V"},
               [&] { Model::from_mil(kBetween, strict); });
}

TEST(Shaders, ThatThrowLeaveTheLayerToTheCpu) {
  MOKA_NEEDS_VULKAN_DRIVER();
  class Throws final : public CustomLayer {
   public:
    void evaluate(const LayerCall& call) const override {
      std::memcpy(call.outputs[0].data, call.inputs[0].data, static_cast<size_t>(call.inputs[0].count) * 4);
    }
    std::optional<LayerShader> shader(const Shapes&) const override { throw std::runtime_error("no idea"); }
  };
  register_operation("my_swish", [](const LayerInfo&) { return std::make_unique<Throws>(); });
  const Model gpu = Model::from_mil(kBetween, on_vulkan());
  unregister_operation("my_swish");
  EXPECT_EQ(refusal_of_vulkan(gpu.compute_plan()),
            "vulkan.registered: registered operation 'my_swish', shader: no idea");
}

TEST(Shaders, InC) {
  MOKA_NEEDS_VULKAN_DRIVER();
  moka_layer_type type{};
  type.struct_size = sizeof type;
  type.evaluate = [](void*, const moka_layer_call* call) -> const char* {
    const auto* x = static_cast<const float*>(call->inputs[0].data);
    auto* y = static_cast<float*>(call->outputs[0].data);
    for (size_t i = 0; i < 150; i++) y[i] = x[i] / (1 + std::exp(-x[i]));
    return nullptr;
  };
  type.shader = [](void*, size_t, const moka_shape* in, moka_layer_shader* shader) -> const char* {
    static const moka_shader_code codes[] = {{"msl", "kernel", 6}, {"spirv", swish_spirv, sizeof swish_spirv}};
    shader->code = codes;
    shader->code_count = std::size(codes);
    shader->groups[0] = static_cast<uint32_t>((in[0].sizes[0] * in[0].sizes[1] + 63) / 64);
    return nullptr;
  };
  ASSERT_EQ(moka_register_operation("my_swish", &type, nullptr), MOKA_OK) << moka_last_error();
  const Model gpu = Model::from_mil(kBetween, on_vulkan()), cpu = Model::from_mil(kBetween);
  moka_unregister_operation("my_swish");
  EXPECT_EQ(gpu.compute_plan().regions.size(), 1u);
  const Features in = noise_for(gpu);
  expect_near(gpu.predict(in).array("y"), cpu.predict(in).array("y"));
}

}  // namespace
}  // namespace moka::test
#endif
