// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "gpu/recording_util.h"
#include "ir/registered.h"

/// What kernels of devices/gpu dispatch: a program in, the text of its regions out.
namespace moka::gpu_test {
namespace {

/// A line of a program, which makes the value `name`.
std::string op(const std::string& type, const std::string& name, const std::string& call) {
  return "tensor<" + type + "> " + name + " = " + call + "[name = string(\"" + name + "\")];\n";
}

/// A constant of equal numbers.
std::string filled(const std::vector<int64_t>& shape, const std::string& name) {
  std::string sizes, numbers = "0.5";
  for (size_t i = shape.size(); i-- > 0;) {
    sizes = std::to_string(shape[i]) + (sizes.empty() ? "" : ", ") + sizes;
    std::string row = numbers;
    for (int64_t k = 1; k < shape[i]; k++) row += ", " + numbers;
    numbers = "[" + row + "]";
  }
  const std::string type = "tensor<fp32, [" + sizes + "]>";
  return type + " " + name + " = const()[name = string(\"" + name + "\"), val = " + type + "(" + numbers + ")];\n";
}

std::string conv(const std::string& x, const std::string& weight, const std::string& pad_type, int groups) {
  return "conv(x = " + x + ", weight = " + weight + ", strides = tensor<int32, [2]>([1, 1]), pad_type = string(\"" +
         pad_type +
         "\"), pad = tensor<int32, [4]>([0, 0, 0, 0]), dilations = tensor<int32, [2]>([1, 1]), groups = int32(" +
         std::to_string(groups) + "))";
}

const std::string kLinear = filled({64, 32}, "w") + op("fp32, [24, 64]", "h", "linear(x = x, weight = w)") +
                            op("fp32, [24, 64]", "y", "relu(x = h)");
const std::string kSeparable = filled({16, 1, 3, 3}, "v") + filled({24, 16, 1, 1}, "w") +
                               op("fp32, [1, 16, 8, 8]", "d", conv("x", "v", "same", 16)) +
                               op("fp32, [1, 24, 8, 8]", "y", conv("d", "w", "valid", 1));

/// x * sigmoid(x), whose shader is there in some kinds.
class Swish final : public ir::Registered {
 public:
  explicit Swish(std::vector<ir::RegisteredShader::Code> code) : code_(std::move(code)) {}
  const std::string& what() const override { return what_; }
  Result<std::vector<ir::Type>> infer(std::span<const ir::Arg> in, std::span<const ir::Type>) const override {
    return std::vector<ir::Type>{*in[0].type};
  }
  Result<ir::RegisteredPlan> plan(std::span<const ir::Type>, std::span<const ir::Type>, int) const override {
    return ir::RegisteredPlan{};
  }
  Status run(const ir::RegisteredCall&) const override { return {}; }
  Result<std::optional<ir::RegisteredShader>> shader(std::span<const ir::Type>,
                                                     std::span<const ir::Type>) const override {
    ir::RegisteredShader s;
    s.code = code_;
    s.constants = {7};
    s.parameters.resize(4);
    s.groups = {2, 1, 1};
    return std::optional(std::move(s));
  }

 private:
  const std::string what_ = "registered operation 'my_swish'";
  std::vector<ir::RegisteredShader::Code> code_;
};

/// What is recorded of a program around an operation with such a shader.
std::string recorded_around(std::vector<ir::RegisteredShader::Code> code) {
  ir::register_class(ir::RegisteredKind::operation, "my_swish",
                     {[=](ir::RegisteredSpec) -> Result<std::shared_ptr<const ir::Registered>> {
                        return std::shared_ptr<const ir::Registered>(std::make_shared<Swish>(code));
                      },
                      {},
                      {}});
  const RecordingDevice device(card());
  const std::string text = recorded(
      device, "tensor<fp32, [8]> x",
      op("fp32, [8]", "a", "exp(x = x)") + op("fp32, [8]", "b", "my_swish(x = a)") + op("fp32, [8]", "y", "sin(x = b)"),
      "y");
  ir::unregister_class(ir::RegisteredKind::operation, "my_swish");
  return text;
}

TEST(Recording, ElementwiseOperationsBecomeOneDispatch) {
  EXPECT_EQ(recorded(RecordingDevice(card()), "tensor<fp32, [2, 3]> x, tensor<fp32, [3]> s",
                     op("fp32, [2, 3]", "a", "exp(x = x)") + op("fp32, [2, 3]", "y", "mul(x = a, y = s)"), "y"),
            // Two dimensions, two inputs, two instructions: exp of input 0, and their product with input 1.
            "upload a[0:24]\n"
            "upload a[64:76]\n"
            "chain_short_f32<2 2 2 13 0 0 67138 0 0>(a[0:24] a[64:76] a[0:4]_ a[0:4]_ a[0:4]_ a[0:4]_ a[0:24]*) "
            "{0 0 0 0 0 0 0 6 3 2 1 1 3 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0} 1x1x1\n"
            "download a[0:24]\n");
}

TEST(Recording, FeaturesAreThoseOfTheCard) {
  // Tiles of 32 by 32 in shared memory, by 64 invocations.
  EXPECT_EQ(recorded(RecordingDevice(card()), "tensor<fp32, [24, 32]> x", kLinear, "y"),
            "upload a[6144:9216]\n"
            "matmul_f32<1 1 43 0 32 64 1>(a[6144:9216] b[0:8192] a[6144:6148]_ a[6144:6148]_ a[0:6144]*) "
            "{0 0 0 0 0 0 inf 0 0 4 24 64 32 32 1 1 32 64 1 1 1 1 0 0 0 0 0 0 0 0 0} 2x1x1\n"
            "download a[0:6144]\n");
  // Blocks in registers, by one subgroup.
  EXPECT_EQ(recorded(RecordingDevice(card_without_tiles()), "tensor<fp32, [24, 32]> x", kLinear, "y"),
            "upload a[6144:9216]\n"
            "matmul_block_f32<1 1 43 0 4 1 1 32>(a[6144:9216] b[0:8192] a[6144:6148]_ a[6144:6148]_ a[0:6144]*) "
            "{0 0 0 0 0 0 inf 0 0 4 24 64 32 32 1 1 32 64 1 1 1 1 0 0 0 0 0 0 0 0 0} 1x1x1\n"
            "download a[0:6144]\n");
}

TEST(Recording, ACardWithoutFloat16LeavesItToTheHost) {
  const std::string exp = op("fp16, [8]", "y", "exp(x = x)");
  EXPECT_EQ(recorded(RecordingDevice(card()), "tensor<fp16, [8]> x", exp, "y"),
            "upload a[0:16]\n"
            "unary_f16<13 0 0>(a[0:16] a[0:16]*) {0 0 8 0 0 0 0 0 0} 1x1x1\n"
            "download a[0:16]\n");
  devices::gpu::Features without = card();
  without.half_storage = without.half = false;
  EXPECT_EQ(recorded(RecordingDevice(without), "tensor<fp16, [8]> x", exp, "y"), "");
}

TEST(Recording, ValuesThatTheHostDoesNotSeeAreCopied) {
  EXPECT_EQ(recorded(RecordingDevice(card(), false), "tensor<fp32, [24, 32]> x", kLinear, "y"),
            "upload a[6144:9216]\n"
            "copy(b[0:3072] a[6144:9216]*)\n"
            "wait matmul_f32<1 1 43 0 32 64 1>(a[6144:9216] c[0:8192] a[6144:6148]_ a[6144:6148]_ a[0:6144]*) "
            "{0 0 0 0 0 0 inf 0 0 4 24 64 32 32 1 1 32 64 1 1 1 1 0 0 0 0 0 0 0 0 0} 2x1x1\n"
            "wait copy(a[0:6144] b[3072:9216]*)\n"
            "download a[0:6144]\n");
}

TEST(Recording, ACommandWaitsForWhatItReads) {
  const std::string rows =
      op("fp32, [4, 6]", "p", "softmax(x = x, axis = int32(-1))") +
      op("fp32, [4]", "y", "reduce_max(x = p, axes = tensor<int32, [1]>([-1]), keep_dims = bool(false))");
  // Each row is a group of 6 members.
  EXPECT_EQ(recorded(RecordingDevice(card()), "tensor<fp32, [4, 6]> x", rows, "y"),
            "upload a[0:96]\n"
            "softmax_f32<1 1 0 0>(a[0:96] a[0:96]*) {0 0 4 6 0 0 0 0 0 0 4 1 1 1 6 0 0 0 6 1 1 1 1 0 0 0} 1x1x1\n"
            "wait reduce_f32<1 1 2 0 0>(a[0:96] a[128:144]*) "
            "{0 0 4 6 0 0 0 0 0 0 4 1 1 1 6 0 0 0 6 1 1 1 1 0 0 0} 1x1x1\n"
            "download a[128:144]\n");
}

TEST(Recording, ADepthwiseConvolutionIsJoinedWhereThatPays) {
  const std::string x = "tensor<fp32, [1, 16, 8, 8]> x";
  // A large card has too few workgroups at work.
  EXPECT_EQ(recorded(RecordingDevice(card()), x, kSeparable, "y"),
            "upload a[6144:10240]\n"
            "conv_direct_f32<1 3 3 0 0 1 1 1>(a[6144:10240] b[0:576] a[6144:6148]_ a[6144:6148]_ a[10240:14336]* "
            "a[6144:6148]_) {0 0 0 0 0 0 0 0 0 0 1024 1 1 16 1 8 8 1 8 8 1 1 1 1 1 1 0 1 1 0 1 3} 4x1x1\n"
            "wait conv_f32<1 1 1 1 0 0 32 64 1>(a[10240:14336] c[0:1536] a[10240:10244]_ a[10240:10244]_ a[0:6144]* "
            "a[10240:10244]_) {0 0 0 0 0 0 0 0 0 0 16 24 1 1 8 8 1 8 8 1 1 1 1 1 1 0 0 0 0} 2x1x1\n"
            "download a[0:6144]\n");
  EXPECT_EQ(recorded(RecordingDevice(card_without_tiles()), x, kSeparable, "y"),
            "upload a[6144:10240]\n"
            "conv_depthwise_block_f32<3 0 0 0 0 0 8 1 1 128>(a[6144:10240] b[0:1536] a[6144:6148]_ a[6144:6148]_ "
            "a[0:6144]* c[0:576] a[6144:6148]_ a[6144:6148]_) "
            "{0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 16 24 8 8 8 8 1 1 1 1 1 1 0 16 5 3} 1x1x1\n"
            "download a[0:6144]\n");
}

TEST(Recording, AShaderOfAKindThatTheDeviceTakesIsAPartOfTheRegion) {
  EXPECT_EQ(recorded_around({{"spirv", "words"}, {"name", "swish"}}),
            "upload a[128:160]\n"
            "unary_f32<13 0 0>(a[128:160] a[128:160]*) {0 0 8 0 0 0 0 0 0} 1x1x1\n"
            "wait swish<7>(a[128:160] a[192:224]*) {0} 2x1x1\n"
            "wait unary_f32<33 0 0>(a[192:224] a[192:224]*) {0 0 8 0 0 0 0 0 0} 1x1x1\n"
            "download a[192:224]\n");
}

TEST(Recording, AShaderOfAnotherKindEndsIt) {
  EXPECT_EQ(recorded_around({{"spirv", "words"}}),
            "upload a[0:32]\n"
            "unary_f32<13 0 0>(a[0:32] a[0:32]*) {0 0 8 0 0 0 0 0 0} 1x1x1\n"
            "download a[0:32]\n"
            "\n"
            "upload a[0:32]\n"
            "unary_f32<33 0 0>(a[0:32] a[0:32]*) {0 0 8 0 0 0 0 0 0} 1x1x1\n"
            "download a[0:32]\n");
}

}  // namespace
}  // namespace moka::gpu_test
