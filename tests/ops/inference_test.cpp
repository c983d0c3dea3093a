// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "ir/op_def.h"
#include "ir/text_reader.h"
#include "ops/operation_util.h"

// Inputs that the elementwise, reduction and normalization operations must refuse.
namespace moka::ops {
namespace {

using namespace ir;
using test::refuses;

Tensor zeros(const Shape& s, DType t = DType::fp32) { return Tensor::zeros(t, s).value(); }

TEST(Inference, Shapes) {
  EXPECT_TRUE(refuses("add", {{"x", zeros({2, 3})}, {"y", zeros({2, 4})}}, "broadcast"));
  EXPECT_TRUE(refuses("add", {{"x", zeros({2})}, {"y", zeros({2}, DType::int32)}}, "fp32"));
  EXPECT_TRUE(refuses("select", {{"cond", zeros({3}, DType::boolean)}, {"a", zeros({2})}, {"b", zeros({2})}}, "cond"));
  EXPECT_TRUE(refuses("prelu", {{"x", zeros({1, 3, 2})}, {"alpha", zeros({2})}}, "alpha"));
  EXPECT_TRUE(
      refuses("softplus_parametric", {{"x", zeros({1, 3})}, {"alpha", zeros({3})}, {"beta", zeros({3})}}, "rank 3"));
  EXPECT_TRUE(
      refuses("batch_norm", {{"x", zeros({1, 3, 2})}, {"mean", zeros({3})}, {"variance", zeros({3, 1})}}, "variance"));
  EXPECT_TRUE(refuses("instance_norm", {{"x", zeros({1, 3, 2})}, {"gamma", zeros({4})}}, "gamma"));
  EXPECT_TRUE(refuses("l2_norm", {{"x", zeros({3, 2})}}, "rank 3"));
  EXPECT_TRUE(
      refuses("layer_norm", {{"x", zeros({3, 2})}, {"axes", Tensor::i32({1})}, {"gamma", zeros({3})}}, "gamma"));
  EXPECT_TRUE(refuses("layer_norm", {{"x", zeros({3, 2})}, {"axes", Tensor::i32({1})}, {"beta", zeros({3})}}, "beta"));
}

/// Errors of helpers that do not know the operation name it, too.
TEST(Inference, ErrorsNameTheOperation) {
  EXPECT_TRUE(
      refuses("matmul", {{"x", zeros({2, 1, 2})}, {"y", zeros({3, 2, 1})}}, "operation 'op' (matmul), parameter 'y'"));
  const Tensor two = zeros({2, 1, 2}), three = zeros({3, 1, 2});
  for (int other : {0, 1, 2}) {
    auto of = [&](int i) { return i == other ? three : two; };
    EXPECT_TRUE(refuses("scaled_dot_product_attention", {{"query", of(0)}, {"key", of(1)}, {"value", of(2)}},
                        "operation 'op' (scaled_dot_product_attention)"));
  }
  EXPECT_TRUE(refuses("quantize",
                      {{"input", zeros({2, 3})}, {"scale", zeros({2})}, {"axis", 5}, {"output_dtype", "int8"}},
                      "operation 'op' (quantize), parameter 'axis'"));
  const Tensor huge = Tensor::i32({2000000000, 2000000000, 2000000000});
  EXPECT_TRUE(refuses("fill", {{"shape", huge}, {"value", 0.0f}}, "operation 'op' (fill): shape"));
  EXPECT_TRUE(refuses("tile", {{"x", zeros({1, 1, 1})}, {"reps", huge}}, "operation 'op' (tile): shape"));
  EXPECT_TRUE(refuses("pad",
                      {{"x", zeros({1, 1, 1})}, {"pad", Tensor::i32({0, 2000000000, 0, 2000000000, 0, 2000000000})}},
                      "operation 'op' (pad): shape"));
  EXPECT_TRUE(refuses("random_uniform", {{"shape", huge}}, "operation 'op' (random_uniform): shape"));
}

/// A row has one dimension fewer than a tensor may have.
TEST(Inference, RowsOfConvert) {
  EXPECT_TRUE(refuses(
      "ml_convert",
      {{"x", zeros({3, 2})}, {"dtype", "fp64"}, {"shape", Tensor::i32({1, 1, 1, 1, 1, 1, 1, 2})}, {"rows", true}},
      "parameter 'shape': expected at most 7 sizes of a row"));
}

/// Kernels do not check these sizes, because inference does.
TEST(Inference, ClassicModels) {
  const Tensor none = zeros({0}, DType::int64), numbers = zeros({0}, DType::fp64), one = zeros({}, DType::fp64);
  for (const char* empty : {"bias_mean", "bias_variance"}) {
    const auto bias = [&](const std::string& name) { return name == empty ? numbers : one; };
    EXPECT_TRUE(refuses("ml_bayesian_probit",
                        {{"x", zeros({2})},
                         {"feature", none},
                         {"value", none},
                         {"weight_mean", numbers},
                         {"weight_variance", numbers},
                         {"bias_mean", bias("bias_mean")},
                         {"bias_variance", bias("bias_variance")}},
                        empty));
  }
  const auto program = read_text(R"(program(1.0)
{
    func main<ios15>(tensor<fp32, [3, 1]> a, tensor<fp32, [2, 1]> b) {
            tensor<fp64, [3, 2]> y = ml_feature_vectorize(values = (a, b), dimensions = tensor<int64, [2]>([1, 1]), rows = bool(true))[name = string("y")];
        } -> (y);
})",
                                 table());
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.error().to_string().find("expected 3 rows"), std::string::npos) << program.error().to_string();
}

TEST(Inference, Axes) {
  EXPECT_TRUE(refuses("softmax", {{"x", zeros({3, 2})}, {"axis", 2}}, "axis"));
  EXPECT_TRUE(refuses("softmax", {{"x", zeros({3, 2})}, {"axis", std::numeric_limits<int>::min()}}, "axis"));
  EXPECT_TRUE(refuses("softmax", {{"x", zeros({})}}, "axis"));
  EXPECT_TRUE(refuses("reduce_sum", {{"x", zeros({3, 2})}, {"axes", Tensor::i32({0, -2})}}, "axes"));
  EXPECT_TRUE(refuses("reduce_sum", {{"x", zeros({3, 2})}, {"axes", Tensor::i32({-3})}}, "axes"));
  EXPECT_TRUE(refuses("reduce_max", {{"x", zeros({3, 0})}, {"axes", Tensor::i32({1})}}, "elements"));
  EXPECT_TRUE(refuses("reduce_argmax", {{"x", zeros({3, 0})}}, "elements"));
  EXPECT_TRUE(refuses("reduce_argmin", {{"x", zeros({})}}, "axis"));
  EXPECT_TRUE(refuses("layer_norm", {{"x", zeros({3, 2})}, {"axes", Tensor::i32({2})}}, "axes"));
}

TEST(Inference, Values) {
  EXPECT_TRUE(refuses("cast", {{"x", zeros({1})}, {"dtype", "string"}}, "dtype"));
  EXPECT_TRUE(refuses("cast", {{"x", zeros({1})}, {"dtype", "int4"}}, "dtype"));
  EXPECT_TRUE(refuses("cast", {{"x", zeros({1})}, {"dtype", ""}}, "dtype"));
  EXPECT_TRUE(refuses("clip", {{"x", zeros({1})}, {"alpha", 1.0f}, {"beta", 1.0f}}, "alpha"));
  EXPECT_TRUE(refuses("gelu", {{"x", zeros({1})}, {"mode", "NONE"}}, "mode"));
  EXPECT_TRUE(refuses("elu", {{"x", zeros({1})}, {"alpha", zeros({2})}}, "alpha"));
  EXPECT_TRUE(refuses("local_response_norm", {{"x", zeros({1, 2, 3})}, {"size", 0}}, "size"));
  EXPECT_TRUE(refuses("reduce_argmax", {{"x", zeros({1})}, {"output_dtype", "int8"}}, "output_dtype"));
}

/// Steps that would leave their tensor, or create many rows of few elements.
TEST(Inference, AttentionStaysWithinItsTensors) {
  auto with = [](std::vector<int64_t> sizes, std::vector<int64_t> key_steps, const Shape& mask = {1}) {
    const int64_t rows = sizes[2], width = sizes[4];
    return std::vector<ir::NamedArg>{{"query", zeros({rows * width})},
                                     {"key", zeros({12})},
                                     {"value", zeros({12})},
                                     {"attn_mask", zeros(mask)},
                                     {"sizes", Tensor::i32(sizes)},
                                     {"query_steps", Tensor::i32({0, 0, 0, width, 1})},
                                     {"key_steps", Tensor::i32(key_steps)},
                                     {"value_steps", Tensor::i32({0, 0, 0, 1, 1})},
                                     {"scale", 1.0f},
                                     {"rows_first", true}};
  };
  EXPECT_FALSE(refuses("moka_attention", with({1, 1, 2, 3, 4, 2}, {0, 0, 0, 4, 1}), "key"));
  EXPECT_TRUE(refuses("moka_attention", with({1, 1, 2, 3, 4, 2}, {1, 0, 0, 4, 1}), "key_steps"));
  EXPECT_TRUE(refuses("moka_attention", with({2, 1, 2, 3, 4, 2}, {0, 1, 0, 4, 1}), "key_steps"));
  EXPECT_TRUE(refuses("moka_attention", with({1, 1, 2, 3, 4, 2}, {0, 0, 0, 0, 1}), "key_steps"));
  EXPECT_TRUE(refuses("moka_attention", with({1, 1, 2, 3, 4, 2}, {0, 0, 0, 4, -1}), "key_steps"));
  EXPECT_TRUE(refuses("moka_attention", with({1, 1, 2, 3, 4, 2}, {0, 0, 0, 4}), "key_steps"));
  EXPECT_TRUE(refuses("moka_attention", with({1, 1, 2, 0, 4, 2}, {0, 0, 0, 4, 1}), "sizes"));
  EXPECT_TRUE(refuses("moka_attention", with({1, 1, 2, 3, 4, 2}, {0, 0, 0, 4, 1}, {3, 3}), "attn_mask"));
}

TEST(Integers, DivideWithoutTraps) {
  const Tensor x = Tensor::i32({std::numeric_limits<int32_t>::min(), 5, -5}), y = Tensor::i32({-1, 0, 0});
  // numpy's int32 results, apart from real_div, which numpy computes in floating point.
  EXPECT_EQ(test::call("floor_div", {{"x", x}, {"y", y}}), Tensor::i32({std::numeric_limits<int32_t>::min(), 0, 0}));
  EXPECT_EQ(test::call("mod", {{"x", x}, {"y", y}}), Tensor::i32({0, 0, 0}));
  EXPECT_TRUE(test::evaluate("real_div", {{"x", x}, {"y", y}}).ok());
  EXPECT_TRUE(test::evaluate("pow", {{"x", x}, {"y", Tensor::i32({3, 1 << 30, -1})}}).ok());
}

}  // namespace
}  // namespace moka::ops
