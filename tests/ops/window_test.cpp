// SPDX-License-Identifier: Apache-2.0
#include "ops/common/window.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/evaluate.h"
#include "ir/text_reader.h"
#include "ops/common/sampling.h"

namespace moka {
namespace {

/// A program of one operation on x (and more inputs, "tensor<...> w"), with constants written in MIL text.
std::string program(const std::string& op, const std::string& inputs,
                    const std::vector<std::pair<std::string, std::string>>& constants, const std::string& result,
                    const std::string& opset = "ios17") {
  std::string text = "program(1.0)\n{\n    func main<" + opset + ">(" + inputs + ") {\n", args;
  for (const auto& [name, value] : constants) {
    const std::string type = value.substr(0, value.find('('));
    text += "            " + type + " c_" + name + " = const()[name = tensor<string, []>(\"c_" + name +
            "\"), val = " + value + "];\n";
    args += ", " + name + " = c_" + name;
  }
  for (size_t at = 0; (at = inputs.find("> ", at)) != std::string::npos;) {
    at += 2;
    const std::string name = inputs.substr(at, inputs.find(',', at) - at);
    args += ", " + name + " = " + name;
  }
  return text + "            " + result + " result = " + op + "(" + args.substr(2) +
         ")[name = tensor<string, []>(\"op\")];\n        } -> (result);\n}\n";
}

std::string error_of(const std::string& text) {
  const auto p = ir::read_text(text, ops::table());
  return p.ok() ? "" : p.error().to_string();
}

std::string text(const std::string& s) { return "tensor<string, []>(\"" + s + "\")"; }

const std::string kX = "tensor<fp32, [1, 4, 5, 6]> x";
const std::string kW = "tensor<fp32, [2, 4, 3, 3]> weight";
const std::string kAnything = "tensor<fp32, [?, ?, ?, ?]>";

#define EXPECT_FAILS(program_text, words) \
  EXPECT_NE(error_of(program_text).find(words), std::string::npos) << error_of(program_text) << "\n" << (program_text)

TEST(Conv, ShapesAreChecked) {
  const std::string x = kX + ", ";
  EXPECT_EQ(error_of(program("conv", x + kW, {}, "tensor<fp32, [1, 2, 3, 4]>")), "");
  EXPECT_FAILS(program("conv", x + "tensor<fp32, [2, 3, 3, 3]> weight", {}, kAnything), "weight");
  EXPECT_FAILS(program("conv", x + "tensor<fp32, [2, 4, 3]> weight", {}, kAnything), "rank 4");
  EXPECT_FAILS(program("conv", x + "tensor<fp32, [2, 4, 0, 3]> weight", {}, kAnything), "kernel sizes");
  EXPECT_FAILS(program("conv", x + "tensor<fp32, [2, 4, 6, 3]> weight", {}, kAnything), "does not fit");
  EXPECT_FAILS(program("conv", x + kW + ", tensor<fp32, [3]> bias", {}, kAnything), "bias");
  EXPECT_FAILS(program("conv", "tensor<fp32, [1, 4]> x, " + kW, {}, kAnything), "rank 3 to 5");
}

TEST(Conv, SettingsAreChecked) {
  const std::string in = kX + ", " + kW;
  EXPECT_FAILS(program("conv", in, {{"groups", "tensor<int32, []>(3)"}}, kAnything), "groups");
  EXPECT_FAILS(program("conv", in, {{"groups", "tensor<int32, []>(0)"}}, kAnything), "groups");
  EXPECT_FAILS(program("conv", in, {{"strides", "tensor<int32, [2]>([0, 1])"}}, kAnything), "strides");
  EXPECT_FAILS(program("conv", in, {{"strides", "tensor<int32, [3]>([1, 1, 1])"}}, kAnything), "strides");
  EXPECT_FAILS(program("conv", in, {{"dilations", "tensor<int32, [2]>([-1, 1])"}}, kAnything), "dilations");
  EXPECT_FAILS(program("conv", in, {{"dilations", "tensor<int32, [2]>([2147483647, 1])"}}, kAnything), "does not fit");
  EXPECT_FAILS(program("conv", in, {{"pad_type", text("custom")}, {"pad", "tensor<int32, [2]>([1, 1])"}}, kAnything),
               "pad");
  EXPECT_FAILS(
      program("conv", in, {{"pad_type", text("custom")}, {"pad", "tensor<int32, [4]>([1, 1, -1, 0])"}}, kAnything),
      "pad");
  EXPECT_FAILS(program("conv", in, {{"pad_type", text("full")}}, kAnything), "pad_type");
}

/// Cases that the definition leaves open.
TEST(ConvQuantized, RefusesWhatIsNotDefined) {
  const std::string in = kX + ", tensor<uint8, [2, 4, 3, 3]> weight";
  auto with = [&](const std::string& kind, const std::string& bits, const std::string& scale, bool bias) {
    std::vector<std::pair<std::string, std::string>> settings = {{"quantization_type", text(kind)},
                                                                 {"nbits", "tensor<int32, []>(" + bits + ")"},
                                                                 {"quant_scale", scale},
                                                                 {"quant_bias", "tensor<fp32, []>(0)"}};
    if (bias) settings.emplace_back("bias", "tensor<uint8, [2]>([0, 1])");
    return program("conv_quantized", in, settings, kAnything);
  };
  const std::string one = "tensor<fp32, []>(1)";
  EXPECT_EQ(error_of(with("linear", "8", one, false)), "");
  EXPECT_EQ(error_of(with("linear", "8", "tensor<fp32, [2, 1]>([[1], [2]])", false)), "");
  EXPECT_FAILS(with("lut", "8", one, false), "no parameter holds a table");
  EXPECT_FAILS(with("linear", "4", one, false), "the packing of other widths is not defined");
  EXPECT_FAILS(with("linear", "8", one, true), "the meaning of its integers is not defined");
  EXPECT_FAILS(with("linear", "8", "tensor<fp32, [3]>([1, 2, 3])", false), "each of 2 output channels");
}

TEST(Conv, UnknownSizesStayUnknown) {
  const std::string x = "tensor<fp32, [?, 4, ?, 6]> x, " + kW;
  EXPECT_EQ(error_of(program("conv", x, {}, "tensor<fp32, [?, 2, ?, 4]>")), "");
  EXPECT_NE(error_of(program("conv", x, {}, "tensor<fp32, [?, 2, ?, 5]>")), "");
}

TEST(ConvTranspose, ShapesAreChecked) {
  const std::string in = kX + ", tensor<fp32, [4, 2, 3, 3]> weight";
  EXPECT_EQ(error_of(program("conv_transpose", in, {}, "tensor<fp32, [1, 2, 7, 8]>")), "");
  EXPECT_FAILS(program("conv_transpose", kX + ", tensor<fp32, [3, 2, 3, 3]> weight", {}, kAnything), "weight");
  EXPECT_FAILS(program("conv_transpose", in, {{"pad_type", text("same_lower")}}, kAnything), "pad_type");
  EXPECT_FAILS(program("conv_transpose", in, {{"output_shape", "tensor<int32, [4]>([1, 3, 7, 8])"}}, kAnything),
               "output_shape");
  EXPECT_FAILS(program("conv_transpose", in, {{"output_shape", "tensor<int32, [4]>([1, 2, 0, 8])"}}, kAnything),
               "0 elements");
  EXPECT_FAILS(program("conv_transpose", in,
                       {{"pad_type", text("custom")}, {"pad", "tensor<int32, [4]>([4, 3, 0, 0])"}}, kAnything),
               "0 elements");
}

TEST(Pool, SettingsAreChecked) {
  const std::pair<std::string, std::string> valid{"pad_type", text("valid")},
      k{"kernel_sizes", "tensor<int32, [2]>([2, 2])"};
  EXPECT_EQ(error_of(program("max_pool", kX, {k, valid}, "tensor<fp32, [1, 4, 4, 5]>")), "");
  EXPECT_FAILS(program("max_pool", kX, {{"kernel_sizes", "tensor<int32, [2]>([2, 0])"}, valid}, kAnything),
               "kernel_sizes");
  EXPECT_FAILS(program("max_pool", kX, {{"kernel_sizes", "tensor<int32, [2]>([6, 2])"}, valid}, kAnything),
               "does not fit");
  EXPECT_FAILS(
      program("avg_pool", kX, {k, {"pad_type", text("same")}, {"ceil_mode", "tensor<bool, []>(true)"}}, kAnything),
      "ceil_mode");
  EXPECT_FAILS(program("avg_pool", kX,
                       {k,
                        {"pad_type", text("custom")},
                        {"pad", "tensor<int32, [4]>([1, 0, 0, 0])"},
                        {"ceil_mode", "tensor<bool, []>(true)"}},
                       kAnything),
               "equal padding");
  EXPECT_FAILS(program("l2_pool", "tensor<fp32, [1, 1, 2, 2, 2]> x",
                       {{"kernel_sizes", "tensor<int32, [3]>([1, 1, 1])"}, valid}, "tensor<fp32, [?, ?, ?, ?, ?]>"),
               "rank 3 to 4");
}

TEST(Products, ShapesAreChecked) {
  const std::string any2 = "tensor<fp32, [?, ?]>";
  EXPECT_FAILS(program("matmul", "tensor<fp32, [2, 3]> x, tensor<fp32, [2, 3]> y", {}, any2), "columns");
  EXPECT_FAILS(program("matmul", "tensor<fp32, [2, 2, 3]> x, tensor<fp32, [3, 3, 2]> y", {}, "tensor<fp32, [?, ?, ?]>"),
               "roadcast");
  EXPECT_FAILS(program("matmul", "tensor<fp32, [3]> x, tensor<fp32, [3, 2]> y",
                       {{"transpose_x", "tensor<bool, []>(true)"}}, "tensor<fp32, [?]>"),
               "transpose_x");
  EXPECT_FAILS(program("matmul", "tensor<fp32, [2, 3]> x, tensor<fp16, [3, 2]> y", {}, any2), "element type");
}

TEST(Resize, SettingsAreChecked) {
  EXPECT_FAILS(program("resize_bilinear", kX, {{"target_size_height", "tensor<int32, []>(0)"}}, kAnything),
               "target_size_height");
  EXPECT_FAILS(
      program("upsample_nearest_neighbor", kX, {{"scale_factor_width", "tensor<fp32, []>(-0x1p+0)"}}, kAnything),
      "scale_factor_width");
  EXPECT_FAILS(
      program("crop", kX, {{"crop_height", "tensor<int32, [2]>([3, 3])"}, {"crop_width", "tensor<int32, [2]>([0, 0])"}},
              kAnything),
      "crop_height");
  EXPECT_FAILS(program("upsample_bilinear", kX,
                       {{"align_corners", "tensor<bool, []>(true)"}, {"half_pixel_centers", "tensor<bool, []>(true)"}},
                       kAnything),
               "half_pixel_centers");
}

/// Runs on tensors of zeros. Returns the number of elements of the first result, or -1.
int64_t elements_of_result(const std::string& text) {
  const auto p = ir::read_text(text, ops::table());
  if (!p.ok()) return -1;
  const ir::Function& f = *p.value().functions[0];
  std::vector<ir::RuntimeValue> inputs;
  for (const auto& in : f.body().inputs()) {
    auto t = ir::Tensor::zeros(in->type.dtype(), in->type.shape());
    if (!t.ok()) return -1;
    inputs.emplace_back(std::move(t).value());
  }
  ir::EvaluateOptions options;
  options.table = &ops::table();
  const auto out = ir::evaluate(f, inputs, options);
  return out.ok() ? out.value()[0].tensor.count() : -1;
}

TEST(Empty, HugeSizesBesideZeroTakeNoTime) {
  const std::string huge = "1099511627776";
  EXPECT_EQ(elements_of_result(program("conv", "tensor<fp32, [" + huge + ", 0, 5]> x, tensor<fp32, [0, 0, 2]> weight",
                                       {}, "tensor<fp32, [" + huge + ", 0, 4]>")),
            0);
  EXPECT_EQ(elements_of_result(program("matmul", "tensor<fp32, [" + huge + ", 0]> x, tensor<fp32, [0, 0]> y", {},
                                       "tensor<fp32, [" + huge + ", 0]>")),
            0);
  EXPECT_EQ(elements_of_result(
                program("resize_bilinear", "tensor<fp32, [0, " + huge + ", 1, 1]> x",
                        {{"target_size_height", "tensor<int32, []>(2)"}, {"target_size_width", "tensor<int32, []>(2)"}},
                        "tensor<fp32, [0, " + huge + ", 2, 2]>")),
            0);
  EXPECT_EQ(elements_of_result(program("scaled_dot_product_attention",
                                       "tensor<fp32, [0, 2, 3]> query, tensor<fp32, [0, " + huge +
                                           ", 3]> key, tensor<fp32, [0, " + huge + ", 1]> value",
                                       {}, "tensor<fp32, [0, 2, 1]>", "ios18")),
            0);
}

TEST(Sampling, PositionsAreClamped) {
  EXPECT_EQ(ops::tap_at(-3, 4).low, 0);
  EXPECT_EQ(ops::tap_at(1e300, 4).low, 3);
  EXPECT_EQ(ops::tap_at(1e300, 4).high, 3);
  EXPECT_EQ(ops::tap_at(NAN, 4).low, 0);
  EXPECT_EQ(ops::nearest_at(INFINITY, 4), 3);
  EXPECT_EQ(ops::nearest_at(NAN, 4), 0);
  EXPECT_EQ(ops::nearest_half_pixel(2, 3, 1), 1);
  EXPECT_EQ(ops::nearest_top_left(int64_t{1} << 40, int64_t{1} << 41, (int64_t{1} << 41) - 1), (int64_t{1} << 40) - 1);
}

}  // namespace
}  // namespace moka
