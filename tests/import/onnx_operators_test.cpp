// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "import/onnx_model.h"

namespace moka::import::onnx {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The inputs of a node that has one, x.
struct Given {
  Tensor x;
  std::vector<format::Tensor> weights = {};
  int64_t opset = 18;
};

format::ModelFile model_of(format::Node n, const Given& given) {
  const auto type = given.x.dtype() == DType::fp32 ? kFloat : kInt32;
  std::vector<format::ValueInfo> outputs;
  for (const std::string& name : n.outputs) outputs.push_back(tensor(name, kFloat, {}));
  return model({std::move(n)}, {tensor("x", type, given.x.shape().to_vector())}, outputs, given.weights, given.opset);
}

std::vector<Tensor> answers(format::Node n, const Given& given) {
  return answers(imported(model_of(std::move(n), given)), {given.x});
}

template <class T = float>
std::vector<T> answer(format::Node n, const Given& given) {
  return elements<T>(answers(std::move(n), given)[0]);
}

Tensor floats(const Shape& shape, const std::vector<float>& v) { return Tensor::f32(shape, v); }

TEST(OnnxOperators, ReadsIntegersExactly) {
  constexpr int64_t all = std::numeric_limits<int64_t>::max();
  const Tensor boxes = floats({1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 1.01f, 5, 5, 6, 6});
  const Given given{boxes,
                    {weight<float>("scores", kFloat, {1, 1, 3}, {0.9f, 0.8f, 0.7f}),
                     weight<int64_t>("most", kInt64, {1}, {all}), weight<float>("overlap", kFloat, {1}, {0.5f})}};
  EXPECT_EQ(answer<int32_t>(node("NonMaxSuppression", {"x", "scores", "most", "overlap"}, {"y"}), given),
            (std::vector<int32_t>{0, 0, 0, 0, 0, 2}));
  const Given matrix{floats({2, 2}, {1, 2, 3, 4}), {weight<int64_t>("k", kInt64, {}, {all})}};
  EXPECT_EQ(answer(node("Trilu", {"x", "k"}, {"y"}), matrix), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(answer(node("Trilu", {"x", "k"}, {"y"}, {integer("upper", 0)}), matrix), (std::vector<float>{1, 2, 3, 4}));
}

TEST(OnnxOperators, RefusesSizesThatAreTooLarge) {
  constexpr int64_t wrapped = (int64_t{1} << 32) + 1;
  const Given given{floats({2}, {1, 0}),
                    {weight<int64_t>("n", kInt64, {1}, {wrapped}), weight<float>("values", kFloat, {2}, {0, 1})}};
  EXPECT_NE(refusal(model_of(node("TopK", {"x", "n"}, {"y", "i"}), given)).find("k of 4294967297"), std::string::npos);
  EXPECT_NE(refusal(model_of(node("OneHot", {"x", "n", "values"}, {"y"}), given)).find("a depth of 4294967297"),
            std::string::npos);
}

TEST(OnnxOperators, TakesTheValuesOfOneHotAsTheyAre) {
  const auto hot = [](const std::vector<float>& values) {
    const Given given{Tensor::i32({0, -1, 3}),
                      {weight<int64_t>("depth", kInt64, {}, {3}), weight<float>("values", kFloat, {2}, values)}};
    return answer(node("OneHot", {"x", "depth", "values"}, {"y"}), given);
  };
  constexpr float large = 1e8f;
  EXPECT_EQ(hot({large, 1}), (std::vector<float>{1, large, large, large, large, 1, large, large, large}));
  EXPECT_EQ(hot({-kInfinity, 0}), (std::vector<float>{0, -kInfinity, -kInfinity, -kInfinity, -kInfinity, 0, -kInfinity,
                                                      -kInfinity, -kInfinity}));
}

TEST(OnnxOperators, ComputesScaledSizesInFloat32) {
  std::vector<float> ramp;
  for (int i = 0; i < 10; ++i) ramp.push_back(static_cast<float>(i));
  const Given given{floats({1, 1, 1, 10}, ramp),
                    {weight<float>("scales", kFloat, {4}, {1, 1, 1, 0.7f}),
                     weight<float>("roi", kFloat, {8}, {0, 0, 0, 0.2f, 1, 1, 1, 0.9f})}};
  const auto resize = [](const std::string& coordinates) {
    return node("Resize", {"x", "roi", "scales"}, {"y"}, {text("coordinate_transformation_mode", coordinates)});
  };
  EXPECT_EQ(answer(resize("asymmetric"), given), (std::vector<float>{0, 1, 3, 4, 6, 7, 9}));
  // 4.9, and 14 in float32 where the exact product is below it.
  EXPECT_EQ(answers(resize("tf_crop_and_resize"), given)[0].shape(), (Shape{1, 1, 1, 4}));
  Given whole = given;
  whole.weights[0] = weight<float>("scales", kFloat, {4}, {1, 1, 1, 2});
  EXPECT_EQ(answers(resize("tf_crop_and_resize"), whole)[0].shape(), (Shape{1, 1, 1, 14}));
  format::Attribute scales;
  scales.name = "scales", scales.kind = format::Attribute::Kind::numbers, scales.numbers = {1, 1, 1, 0.7f};
  const std::vector<float> expected{0, 1, 2, 4, 5, 7, 8};
  EXPECT_EQ(answer(node("Upsample", {"x"}, {"y"}, {scales}), {given.x, {}, 7}), expected);
  EXPECT_EQ(answer(node("Upsample", {"x", "scales"}, {"y"}), {given.x, given.weights, 9}), expected);
}

TEST(OnnxOperators, PadsIntegersExactly) {
  constexpr int32_t odd = 16777217, largest = std::numeric_limits<int32_t>::max();
  const Given given{Tensor::i32({odd, largest, -odd - 2}),
                    {weight<int64_t>("pads", kInt64, {2}, {1, 2}), weight<int64_t>("fill", kInt64, {}, {odd}),
                     weight<int64_t>("size", kInt64, {1}, {6})}};
  const auto padded = [&](const std::string& mode) {
    return answer<int32_t>(node("Pad", {"x", "pads", "fill"}, {"y"}, {text("mode", mode)}), given);
  };
  constexpr int32_t last = -odd - 2;
  EXPECT_EQ(padded("constant"), (std::vector<int32_t>{odd, odd, largest, last, odd, odd}));
  EXPECT_EQ(padded("edge"), (std::vector<int32_t>{odd, odd, largest, last, last, last}));
  EXPECT_EQ(padded("reflect"), (std::vector<int32_t>{largest, odd, largest, last, largest, odd}));
  EXPECT_EQ(padded("wrap"), (std::vector<int32_t>{last, odd, largest, last, odd, largest}));
  EXPECT_EQ(answer<int32_t>(node("CenterCropPad", {"x", "size"}, {"y"}), given),
            (std::vector<int32_t>{0, odd, largest, last, 0, 0}));
}

TEST(OnnxOperators, PadsIntegersOfFlexibleSizes) {
  const auto padded = [](const std::string& mode, const std::vector<int64_t>& pads) {
    const auto file = model({node("Pad", {"x", "pads"}, {"y"}, {text("mode", mode)})}, {tensor("x", kInt32, {-1, 2})},
                            {tensor("y", kInt32, {-1, -1})}, {weight<int64_t>("pads", kInt64, {4}, pads)});
    return elements<int32_t>(answers(imported(file), {Tensor::i32({1, 2, 3, 4, 5, 6}).reshaped(Shape{3, 2})})[0]);
  };
  EXPECT_EQ(padded("constant", {1, 0, 0, 1}), (std::vector<int32_t>{0, 0, 0, 1, 2, 0, 3, 4, 0, 5, 6, 0}));
  EXPECT_EQ(padded("edge", {0, 0, 1, 0}), (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 5, 6}));
  EXPECT_EQ(padded("reflect", {1, 0, 0, 1}), (std::vector<int32_t>{3, 4, 3, 1, 2, 1, 3, 4, 3, 5, 6, 5}));
}

TEST(OnnxOperators, MasksInfinities) {
  EXPECT_EQ(answer(node("ThresholdedRelu", {"x"}, {"y"}, {number("alpha", 1)}),
                   {floats({4}, {-kInfinity, -5, 2, kInfinity})}),
            (std::vector<float>{0, 0, 2, kInfinity}));
  EXPECT_EQ(answer(node("Einsum", {"x"}, {"y"}, {text("equation", "ii->i")}), {floats({2, 2}, {1, kInfinity, 3, 4})}),
            (std::vector<float>{1, 4}));
  EXPECT_EQ(answer(node("CumProd", {"x", "axis"}, {"y"}, {integer("exclusive", 1)}),
                   {floats({3}, {kInfinity, 2, 3}), {weight<int64_t>("axis", kInt64, {}, {0})}, 26}),
            (std::vector<float>{1, kInfinity, kInfinity}));
  EXPECT_EQ(answer(node("GridSample", {"x", "grid"}, {"y"}, {integer("align_corners", 1)}),
                   {floats({1, 1, 2, 2}, {kInfinity, 1, 1, 1}),
                    {weight<float>("grid", kFloat, {1, 1, 2, 2}, {-5, -5, 1, 1})}}),
            (std::vector<float>{0, 1}));
  const format::Node loss = node("NegativeLogLikelihoodLoss", {"x", "labels"}, {"y"}, {integer("ignore_index", -1)});
  EXPECT_EQ(
      answer(loss, {floats({2, 2}, {-kInfinity, 0, -0.5f, -1}), {weight<int32_t>("labels", kInt32, {2}, {-1, 0})}}),
      (std::vector<float>{0.5f}));
}

TEST(OnnxOperators, KeepsInfinitiesInMaxPool) {
  const Given given{floats({1, 1, 4}, std::vector<float>(4, -kInfinity))};
  const std::vector<format::Attribute> attributes{integers("kernel_shape", {2}), integers("dilations", {2}),
                                                  integers("pads", {1, 1}), integers("strides", {1})};
  const std::vector<float> expected(4, -kInfinity);
  EXPECT_EQ(answer(node("MaxPool", {"x"}, {"y"}, attributes), given), expected);
  const auto both = answers(node("MaxPool", {"x"}, {"y", "at"}, attributes), given);
  EXPECT_EQ(elements<float>(both[0]), expected);
  EXPECT_EQ(elements<int32_t>(both[1]), (std::vector<int32_t>{1, 0, 1, 2}));
}

TEST(OnnxOperators, FindsTheFirstMaximumOfAPaddedPool) {
  const auto both =
      answers(node("MaxPool", {"x"}, {"y", "at"},
                   {integers("kernel_shape", {2, 2}), integers("pads", {1, 1, 0, 0}), integers("strides", {1, 1})}),
              {floats({1, 2, 2, 2}, {1, 5, 5, -kInfinity, -1, -2, -kInfinity, -2})});
  EXPECT_EQ(elements<float>(both[0]), (std::vector<float>{1, 5, 5, 5, -1, -1, -1, -1}));
  EXPECT_EQ(elements<int32_t>(both[1]), (std::vector<int32_t>{0, 1, 2, 1, 4, 4, 4, 4}));
}

/// One node that leads to 10 if x has the relation `mode` to 0.5, else to 20.
format::Node tree(uint8_t mode, const std::vector<int64_t>& missing) {
  format::Node n =
      node("TreeEnsemble", {"x"}, {"y"},
           {integers("nodes_featureids", {0}), attribute("nodes_splits", weight<float>("", kFloat, {1}, {0.5f})),
            attribute("nodes_modes", weight<uint8_t>("", format::DataType::uint8, {1}, {mode})),
            integers("nodes_truenodeids", {0}), integers("nodes_falsenodeids", {1}), integers("nodes_trueleafs", {1}),
            integers("nodes_falseleafs", {1}), integers("tree_roots", {0}), integers("leaf_targetids", {0, 0}),
            attribute("leaf_weights", weight<float>("", kFloat, {2}, {10, 20})), integer("n_targets", 1)});
  if (!missing.empty()) n.attributes.push_back(integers("nodes_missing_value_tracks_true", missing));
  n.domain = "ai.onnx.ml";
  return n;
}

TEST(OnnxOperators, LeadsMissingValuesDownTrees) {
  const Given given{floats({3, 1}, {std::nanf(""), 0.5f, 0})};
  const std::vector<std::vector<float>> numbers{{10, 10}, {20, 10}, {10, 20}, {20, 20}, {10, 20}, {20, 10}};
  for (uint8_t mode = 0; mode < 6; ++mode) {
    SCOPED_TRACE(static_cast<int>(mode));
    std::vector<float> expected = numbers[mode];
    expected.insert(expected.begin(), 20);
    EXPECT_EQ(answer(tree(mode, {}), given), expected);
    EXPECT_EQ(answer(tree(mode, {0}), given), expected);
    expected[0] = 10;
    EXPECT_EQ(answer(tree(mode, {1}), given), expected);
  }
  EXPECT_NE(refusal(model_of(tree(0, {1, 1}), given)).find("2 nodes_missing_value_tracks_true of 1"),
            std::string::npos);
}

TEST(OnnxOperators, ComputesInverseHyperbolicFunctionsOfAllSizes) {
  const auto near = [](const std::string& type, const std::vector<float>& x, double (*exact)(double)) {
    const std::vector<float> y = answer(node(type, {"x"}, {"y"}), {floats({static_cast<int64_t>(x.size())}, x)});
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = exact(static_cast<double>(x[i]));
      EXPECT_NEAR(static_cast<double>(y[i]), expected, 1e-6 * std::abs(expected)) << type << " of " << x[i];
    }
  };
  near("Asinh", {1e20f, 1e-8f, -1e20f, 0.5f, -0.999f, 1, 1e-3f, 3, 0, 3e38f, -1e-30f}, std::asinh);
  near("Acosh", {1, 1.000001f, 1.5f, 1.999f, 2, 10, 1e20f, 3e38f}, std::acosh);
  EXPECT_EQ(answer(node("Asinh", {"x"}, {"y"}), {floats({2}, {kInfinity, -kInfinity})}),
            (std::vector<float>{kInfinity, -kInfinity}));
  for (const float y : answer(node("Acosh", {"x"}, {"y"}), {floats({4}, {0.5f, 0, -1, -kInfinity})}))
    EXPECT_TRUE(std::isnan(y)) << y;
}

TEST(OnnxOperators, QuantizesToUint8UnlessToldOtherwise) {
  const Given given{floats({3}, {1.4f, 300, -3}), {weight<float>("scale", kFloat, {}, {1})}, 21};
  EXPECT_EQ(answer<int32_t>(node("QuantizeLinear", {"x", "scale"}, {"y"}, {integer("output_dtype", 0)}), given),
            (std::vector<int32_t>{1, 255, 0}));
}

struct AnswerOfNode {
  format::Node node;
  Given given;
  std::vector<float> expected;
};

void expect_answers(std::span<const AnswerOfNode> cases) {
  for (const AnswerOfNode& c : cases) {
    SCOPED_TRACE(cat(c.node.op_type, " of opset ", c.given.opset, ", case ", &c - cases.data()));
    const std::vector<float> got = answer(c.node, c.given);
    ASSERT_EQ(got.size(), c.expected.size());
    for (size_t i = 0; i < got.size(); i++)
      EXPECT_NEAR(got[i], c.expected[i], 2e-6 * (1 + std::abs(c.expected[i]))) << i;
  }
}

Tensor box(const Shape& shape) { return floats(shape, {2, -1, 4, 0.5f, -2, 1, 3, -3}); }

/// What the package onnx and onnxruntime answer where a node leaves out its attributes.
TEST(OnnxOperators, TakeTheDefaultsOfTheStandard) {
  const Tensor six = floats({6}, {-3, -1, -0.25f, 0.25f, 1, 3});
  const auto plain = [](const char* type, const Tensor& x, std::vector<float> expected, int64_t opset = 18) {
    return AnswerOfNode{node(type, {"x"}, {"y"}), {x, {}, opset}, std::move(expected)};
  };
  const auto window = [&](const char* type, const Shape& shape, std::vector<format::Attribute> attributes,
                          std::vector<float> expected) {
    return AnswerOfNode{node(type, {"x"}, {"y"}, std::move(attributes)), {box(shape)}, std::move(expected)};
  };
  const format::Tensor index = weight<int64_t>("i", kInt64, {1, 4}, {1, 0, 1, 0}),
                       none = weight<float>("roi", kFloat, {0}, {}),
                       scales = weight<float>("s", kFloat, {4}, {1, 1, 1.5f, 0.75f}),
                       wide = weight<float>("s", kFloat, {4}, {1, 1, 1, 1.5f});
  const AnswerOfNode cases[] = {
      plain("LeakyRelu", six, {-0.03f, -0.01f, -0.0025f, 0.25f, 1, 3}),
      plain("Elu", six, {-0.95021296f, -0.63212055f, -0.22119921f, 0.25f, 1, 3}),
      plain("Celu", six, {-0.95021296f, -0.63212055f, -0.22119921f, 0.25f, 1, 3}),
      plain("Selu", six, {-1.6705687f, -1.1113307f, -0.38889018f, 0.26267526f, 1.050701f, 3.152103f}),
      plain("HardSigmoid", six, {0, 0.3f, 0.45f, 0.55f, 0.7f, 1}),
      plain("ThresholdedRelu", six, {0, 0, 0, 0, 0, 3}),
      plain("Shrink", six, {-3, -1, 0, 0, 1, 3}),
      plain("Gelu", six, {-0.0040496886f, -0.15865526f, -0.10032342f, 0.14967658f, 0.84134471f, 2.9959502f}, 20),
      plain("Softmax", box({2, 2, 2}),
            {0.95257413f, 0.04742587f, 0.97068775f, 0.02931223f, 0.04742587f, 0.95257413f, 0.99752742f, 0.0024726233f},
            13),
      plain("Softmax", box({2, 2, 2}),
            {0.11544713f, 0.0057477742f, 0.85304534f, 0.025759738f, 0.0058869733f, 0.11824302f, 0.87370431f,
             0.0021656964f},
            11),
      plain("LogSoftmax", box({2, 2, 2}),
            {-0.04858733f, -3.0485873f, -0.029750416f, -3.5297504f, -3.0485873f, -0.04858733f, -0.0024756519f,
             -6.0024757f},
            13),
      plain("Hardmax", box({2, 2, 2}), {1, 0, 1, 0, 0, 1, 1, 0}, 13),
      plain("Hardmax", box({2, 2, 2}), {0, 0, 1, 0, 0, 0, 1, 0}, 11),
      plain(
          "LpNormalization", box({2, 4}),
          {0.43386093f, -0.21693046f, 0.86772186f, 0.10846523f, -0.41702882f, 0.20851441f, 0.62554324f, -0.62554324f}),
      plain("MeanVarianceNormalization", box({2, 2, 1, 2}),
            {1.2649111f, -0.63245553f, 1.0643131f, -0.2313724f, -1.2649111f, 0.63245553f, 0.69411719f, -1.5270578f}),
      plain("GlobalLpPool", box({1, 2, 2, 2}), {4.6097722f, 4.7958317f}),
      plain("ReduceSum", box({2, 4}), {4.5f}),
      plain("ReduceMean", box({2, 4}), {0.5625f}),
      plain("Trilu", box({2, 4}), {2, -1, 4, 0.5f, 0, 1, 3, -3}),
      plain("Transpose", box({1, 2, 4}), {2, -2, -1, 1, 4, 3, 0.5f, -3}),
      plain("EyeLike", box({2, 4}), {1, 0, 0, 0, 0, 1, 0, 0}),
      window("DepthToSpace", {1, 8, 1, 1}, {integer("blocksize", 2)}, {2, 4, -2, 3, -1, 0.5f, 1, -3}),
      window("SpaceToDepth", {1, 1, 2, 4}, {integer("blocksize", 2)}, {2, 4, -1, 0.5f, -2, 3, 1, -3}),
      window("LRN", {1, 4, 1, 2}, {integer("size", 3)},
             {1.9990007f, -0.99996871f, 3.997602f, 0.49997184f, -1.9985511f, 0.99974376f, 2.9990253f, -2.9992499f}),
      window("LpPool", {1, 1, 2, 4}, {integers("kernel_shape", {2, 2})}, {3.1622777f, 5.1961522f, 5.8523498f}),
      window("MaxPool", {1, 1, 2, 4}, {integers("kernel_shape", {2, 3})}, {4, 4}),
      window("MaxPool", {1, 1, 8}, {integers("kernel_shape", {3}), integers("strides", {2})}, {4, 4, 3}),
      window(
          "MaxPool", {1, 1, 8},
          {integers("kernel_shape", {2}), integers("strides", {3}), integers("pads", {0, 1}), integer("ceil_mode", 1)},
          {2, 0.5f, 3}),
      window("AveragePool", {1, 1, 2, 4}, {integers("kernel_shape", {2, 3}), integers("pads", {1, 0, 0, 1})},
             {1.6666666f, 1.1666666f, 2.25f, 1.1666666f, 0.75f, 1.125f}),
      window("AveragePool", {1, 1, 8},
             {integers("kernel_shape", {2}), integers("strides", {2}), text("auto_pad", "SAME_LOWER")},
             {0.5f, 2.25f, -0.5f, 0}),
      {node("TopK", {"x", "k"}, {"y", "places"}),
       {box({2, 4}), {weight<int64_t>("k", kInt64, {1}, {2})}},
       {4, 2, 3, 1}},
      {node("CumSum", {"x", "axis"}, {"y"}),
       {box({2, 4}), {weight<int64_t>("axis", kInt64, {}, {1})}},
       {2, 1, 5, 5.5f, -2, -1, 2, -1}},
      {node("Split", {"x"}, {"y", "z"}), {box({2, 4}), {}, 13}, {2, -1, 4, 0.5f}},
      {node("Gather", {"x", "i"}, {"y"}), {box({2, 4}), {weight<int64_t>("i", kInt64, {1}, {1})}}, {-2, 1, 3, -3}},
      {node("GatherElements", {"x", "i"}, {"y"}), {box({2, 4}), {index}}, {-2, -1, 3, 0.5f}},
      {node("ScatterElements", {"x", "i", "u"}, {"y"}),
       {box({2, 4}), {index, weight<float>("u", kFloat, {1, 4}, {9, 8, 7, 6})}},
       {2, 8, 4, 6, 9, 1, 7, -3}},
      {node("Resize", {"x", "roi", "s"}, {"y"}),
       {box({1, 1, 2, 4}), {none, scales}},
       {2, -1, 0.5f, 2, -1, 0.5f, -2, 1, -3}},
      {node("Resize", {"x", "roi", "s"}, {"y"}, {text("mode", "cubic")}),
       {box({1, 1, 2, 4}), {none, wide}},
       {2.2604177f, 0.03125f, -0.4820602f, 3.5341434f, 2.71875f, 0.19618136f, -2.2604177f, -0.6875f, 1.6516192f,
        3.2858791f, 0.1875f, -3.5208325f}},
      {node("Pad", {"x", "p"}, {"y"}),
       {box({2, 4}), {weight<int64_t>("p", kInt64, {4}, {0, 1, 1, 0})}},
       {0, 2, -1, 4, 0.5f, 0, -2, 1, 3, -3, 0, 0, 0, 0, 0}},
      {node("Gemm", {"x", "w", "c"}, {"y"}),
       {box({2, 4}), {weight<float>("w", kFloat, {4, 1}, {1, 2, 3, 4}), weight<float>("c", kFloat, {1}, {10})}},
       {24, 7}},
      {node("Conv", {"x", "w"}, {"y"}),
       {box({1, 2, 4}), {weight<float>("w", kFloat, {1, 2, 2}, {1, 2, 3, 4})}},
       {-2, 22, 2}},
      {node("ConvTranspose", {"x", "w"}, {"y"}),
       {box({1, 2, 4}), {weight<float>("w", kFloat, {2, 1, 2}, {1, 2, 3, 4})}},
       {-4, -2, 15, 11.5f, -11}},
  };
  expect_answers(cases);
}

/// And where it gives other ones, most of which no exporter of Moka writes.
TEST(OnnxOperators, TakeTheAttributesOfTheStandard) {
  const AnswerOfNode cases[] = {
      {node("LeakyRelu", {"x"}, {"y"}, {number("alpha", 0.25f)}),
       {box({8})},
       {2, -0.25f, 4, 0.5f, -0.5f, 1, 3, -0.75f}},
      {node("Elu", {"x"}, {"y"}, {number("alpha", 2)}),
       {box({8})},
       {2, -1.2642411f, 4, 0.5f, -1.7293295f, 1, 3, -1.9004259f}},
      {node("Celu", {"x"}, {"y"}, {number("alpha", 2)}),
       {box({8})},
       {2, -0.78693867f, 4, 0.5f, -1.2642411f, 1, 3, -1.5537397f}},
      {node("Selu", {"x"}, {"y"}, {number("alpha", 2), number("gamma", 3)}),
       {box({8})},
       {6, -3.7927232f, 12, 1.5f, -5.1879883f, 3, 9, -5.7012777f}},
      {node("HardSigmoid", {"x"}, {"y"}, {number("alpha", 0.5f), number("beta", 0.25f)}),
       {box({8})},
       {1, 0, 1, 0.5f, 0, 0.75f, 1, 0}},
      {node("ThresholdedRelu", {"x"}, {"y"}, {number("alpha", 2)}), {box({8})}, {0, 0, 4, 0, 0, 0, 3, 0}},
      {node("Shrink", {"x"}, {"y"}, {number("lambd", 1.5f), number("bias", 0.5f)}),
       {box({8})},
       {1.5f, 0, 3.5f, 0, -1.5f, 0, 2.5f, -2.5f}},
      {node("Gelu", {"x"}, {"y"}, {text("approximate", "tanh")}),
       {box({8}), {}, 20},
       {1.9545977f, -0.15880796f, 3.9999299f, 0.345714f, -0.045402348f, 0.84119201f, 2.9963627f, -0.0036375225f}},
      {node("Softmax", {"x"}, {"y"}, {integer("axis", 1)}),
       {box({2, 2, 2}), {}, 13},
       {0.11920291f, 0.18242551f, 0.88079703f, 0.81757444f, 0.006692851f, 0.98201376f, 0.99330717f, 0.01798621f}},
      {node("LogSoftmax", {"x"}, {"y"}, {integer("axis", 0)}),
       {box({2, 2, 2}), {}, 13},
       {-0.018149961f, -2.1269281f, -0.31326166f, -0.029750416f, -4.0181499f, -0.12692805f, -1.3132616f, -3.5297503f}},
      {node("LpPool", {"x"}, {"y"}, {integers("kernel_shape", {2, 2}), integer("p", 3), integers("strides", {1, 2})}),
       {box({1, 1, 2, 4})},
       {2.6207414f, 4.9065995f}},
      {node("MeanVarianceNormalization", {"x"}, {"y"}, {integers("axes", {0, 1})}),
       {box({2, 2, 1, 2})},
       {0.10976426f, -0.2409658f, 0.98787832f, 0.72289741f, -1.6464639f, 1.0441852f, 0.54882127f, -1.5261167f}},
      {node("MaxPool", {"x"}, {"y"}, {integers("kernel_shape", {2, 2}), integers("dilations", {1, 2})}),
       {box({1, 1, 2, 4})},
       {4, 1}},
      {node("MaxPool", {"x"}, {"y"},
            {integers("kernel_shape", {1, 2}), integers("pads", {0, 1, 0, 0}), integers("strides", {1, 2})}),
       {box({1, 1, 2, 4})},
       {2, 4, -2, 3}},
      {node("AveragePool", {"x"}, {"y"},
            {integers("kernel_shape", {2, 2}), integers("pads", {0, 1, 1, 0}), integer("count_include_pad", 1),
             integers("strides", {1, 2})}),
       {box({1, 1, 2, 4})},
       {0, 1.75f, -0.5f, 1}},
      {node("AveragePool", {"x"}, {"y"},
            {integers("kernel_shape", {3}), integers("strides", {2}), integer("ceil_mode", 1)}),
       {box({1, 1, 8})},
       {1.6666666f, 0.83333331f, 0.66666669f, 0}},
      {node("AveragePool", {"x"}, {"y"},
            {integers("kernel_shape", {2}), integers("strides", {3}), text("auto_pad", "SAME_UPPER")}),
       {box({1, 1, 8})},
       {0.5f, -0.75f, 0}},
      {node("DepthToSpace", {"x"}, {"y"}, {integer("blocksize", 2), text("mode", "CRD")}),
       {box({1, 8, 1, 1})},
       {2, -1, 4, 0.5f, -2, 1, 3, -3}},
      {node("ReduceSum", {"x", "axes"}, {"y"}, {integer("keepdims", 0)}),
       {box({2, 4}), {weight<int64_t>("axes", kInt64, {1}, {1})}},
       {5.5f, -1}},
      {node("ReduceSum", {"x"}, {"y"}, {integer("noop_with_empty_axes", 1)}),
       {box({2, 4})},
       {2, -1, 4, 0.5f, -2, 1, 3, -3}},
      {node("ReduceLogSumExp", {"x", "axes"}, {"y"}, {}),
       {box({2, 4}), {weight<int64_t>("axes", kInt64, {1}, {-1})}},
       {4.1589427f, 3.1350133f}},
      {node("ReduceL1", {"x", "axes"}, {"y"}, {}),
       {box({2, 4}), {weight<int64_t>("axes", kInt64, {1}, {0})}},
       {4, 2, 7, 3.5f}},
      {node("TopK", {"x", "k"}, {"y", "y1"}, {integer("largest", 0), integer("axis", 0)}),
       {box({2, 4}), {weight<int64_t>("k", kInt64, {1}, {1})}},
       {-2, -1, 3, -3}},
      {node("CumSum", {"x", "axis"}, {"y"}, {integer("exclusive", 1)}),
       {box({2, 4}), {weight<int64_t>("axis", kInt64, {}, {1})}},
       {0, 2, 1, 5, 0, -2, -1, 2}},
      {node("CumSum", {"x", "axis"}, {"y"}, {integer("reverse", 1)}),
       {box({2, 4}), {weight<int64_t>("axis", kInt64, {}, {1})}},
       {5.5f, 3.5f, 4.5f, 0.5f, -1, 1, 0, -3}},
      {node("CumSum", {"x", "axis"}, {"y"}, {integer("exclusive", 1), integer("reverse", 1)}),
       {box({2, 4}), {weight<int64_t>("axis", kInt64, {}, {0})}},
       {-2, 1, 3, -3, 0, 0, 0, 0}},
      {node("Trilu", {"x", "k"}, {"y"}, {integer("upper", 0)}),
       {box({2, 4}), {weight<int64_t>("k", kInt64, {}, {-1})}},
       {0, 0, 0, 0, -2, 0, 0, 0}},
      {node("EyeLike", {"x"}, {"y"}, {integer("k", 2)}), {box({2, 4})}, {0, 0, 1, 0, 0, 0, 0, 1}},
      {node("Transpose", {"x"}, {"y"}, {integers("perm", {1, 2, 0})}),
       {box({1, 2, 4})},
       {2, -1, 4, 0.5f, -2, 1, 3, -3}},
      {node("Split", {"x", "s"}, {"y", "y1"}, {integer("axis", 1)}),
       {box({2, 4}), {weight<int64_t>("s", kInt64, {2}, {1, 3})}, 13},
       {2, -2}},
      {node("Gather", {"x", "i"}, {"y"}, {integer("axis", 1)}),
       {box({2, 4}), {weight<int64_t>("i", kInt64, {2}, {-1, 0})}},
       {0.5f, 2, -3, -2}},
      {node("GatherElements", {"x", "i"}, {"y"}, {integer("axis", 1)}),
       {box({2, 4}), {weight<int64_t>("i", kInt64, {2, 1}, {3, -4})}},
       {0.5f, -2}},
      {node("ScatterElements", {"x", "i", "u"}, {"y"}, {integer("axis", 1), text("reduction", "add")}),
       {box({2, 4}),
        {weight<int64_t>("i", kInt64, {2, 2}, {1, 1, 0, 3}), weight<float>("u", kFloat, {2, 2}, {9, 8, 7, 6})}},
       {2, 16, 4, 0.5f, 5, 1, 3, 3}},
      {node("Slice", {"x", "s", "e", "a", "t"}, {"y"}, {}),
       {box({2, 4}),
        {weight<int64_t>("s", kInt64, {2}, {3, 1}), weight<int64_t>("e", kInt64, {2}, {-9, -9}),
         weight<int64_t>("a", kInt64, {2}, {-1, 0}), weight<int64_t>("t", kInt64, {2}, {-2, -1})}},
       {-3, 1, 0.5f, -1}},
      {node("Resize", {"x", "", "s"}, {"y"},
            {text("mode", "linear"), text("coordinate_transformation_mode", "half_pixel")}),
       {box({1, 1, 2, 4}), {weight<float>("s", kFloat, {4}, {1, 1, 1, 1.5f})}},
       {2, 0.5f, -0.16666687f, 3.1666663f, 2.25f, 0.5f, -2, -0.5f, 1.3333333f, 2.6666665f, 0, -3}},
      {node("Resize", {"x", "", "s"}, {"y"},
            {text("mode", "linear"), text("coordinate_transformation_mode", "asymmetric")}),
       {box({1, 1, 2, 4}), {weight<float>("s", kFloat, {4}, {1, 1, 1, 1.5f})}},
       {2, -5.9604645e-08f, 0.66666687f, 4, 1.6666664f, 0.5f, -2, 5.9604645e-08f, 1.6666667f, 3, -1.0000005f, -3}},
      {node("Resize", {"x", "", "s"}, {"y"},
            {text("mode", "linear"), text("coordinate_transformation_mode", "align_corners")}),
       {box({1, 1, 2, 4}), {weight<float>("s", kFloat, {4}, {1, 1, 1, 1.5f})}},
       {2, 0.19999993f, 2.3841858e-07f, 2.9999998f, 2.5999997f, 0.5f, -2, -0.19999993f, 1.4000001f, 2.5999999f,
        0.59999943f, -3}},
      {node("Resize", {"x", "", "s"}, {"y"},
            {text("mode", "linear"), text("coordinate_transformation_mode", "pytorch_half_pixel")}),
       {box({1, 1, 2, 4}), {weight<float>("s", kFloat, {4}, {1, 1, 1, 1.5f})}},
       {2, 0.5f, -0.16666687f, 3.1666663f, 2.25f, 0.5f, -2, -0.5f, 1.3333333f, 2.6666665f, 0, -3}},
      {node("Resize", {"x", "", "s"}, {"y"}, {text("nearest_mode", "floor")}),
       {box({1, 1, 2, 4}), {weight<float>("s", kFloat, {4}, {1, 1, 1, 0.75f})}},
       {2, -1, 4, -2, 1, 3}},
      {node("Resize", {"x", "", "s"}, {"y"}, {text("nearest_mode", "ceil")}),
       {box({1, 1, 2, 4}), {weight<float>("s", kFloat, {4}, {1, 1, 1, 0.75f})}},
       {-1, 4, 0.5f, 1, 3, -3}},
      {node("Resize", {"x", "", "s"}, {"y"}, {text("nearest_mode", "round_prefer_ceil")}),
       {box({1, 1, 2, 4}), {weight<float>("s", kFloat, {4}, {1, 1, 1, 0.75f})}},
       {2, 4, 0.5f, -2, 3, -3}},
      {node("Resize", {"x", "", "s"}, {"y"},
            {text("mode", "cubic"), number("cubic_coeff_a", -0.5f), integer("exclude_outside", 1)}),
       {box({1, 1, 2, 4}), {weight<float>("s", kFloat, {4}, {1, 1, 1, 1.5f})}},
       {2.1973677f, 0.29411769f, -0.53125f, 3.5659723f, 2.4411767f, 0.26973674f, -2.1973677f, -0.70588237f, 1.4837961f,
        3.1412048f, -0.058823586f, -3.3947368f}},
      {node("Pad", {"x", "p"}, {"y"}, {text("mode", "reflect")}),
       {box({2, 4}), {weight<int64_t>("p", kInt64, {4}, {1, 0, 0, 2})}},
       {-2, 1, 3, -3, 3, 1, 2, -1, 4, 0.5f, 4, -1, -2, 1, 3, -3, 3, 1}},
      {node("Pad", {"x", "p"}, {"y"}, {text("mode", "edge")}),
       {box({2, 4}), {weight<int64_t>("p", kInt64, {4}, {0, 1, 1, 0})}},
       {2, 2, -1, 4, 0.5f, -2, -2, 1, 3, -3, -2, -2, 1, 3, -3}},
      {node("Pad", {"x", "p", "v"}, {"y"}, {}),
       {box({2, 4}), {weight<int64_t>("p", kInt64, {4}, {0, -1, 0, 1}), weight<float>("v", kFloat, {}, {7})}},
       {-1, 4, 0.5f, 7, 1, 3, -3, 7}},
      {node("Gemm", {"x", "w", "c"}, {"y"}, {number("alpha", 2), number("beta", 0.5f), integer("transA", 1)}),
       {box({2, 4}), {weight<float>("w", kFloat, {2, 1}, {1, 2}), weight<float>("c", kFloat, {1}, {10})}},
       {1, 7, 25, -6}},
      {node("Conv", {"x", "w"}, {"y"},
            {integer("group", 2), integers("strides", {2}), integers("pads", {1, 0}), integers("dilations", {2})}),
       {box({1, 2, 4}), {weight<float>("w", kFloat, {2, 1, 2}, {1, 2, 3, 4})}},
       {-2, 0, 4, -9}},
      {node("Conv", {"x", "w"}, {"y"}, {text("auto_pad", "SAME_LOWER")}),
       {box({1, 2, 4}), {weight<float>("w", kFloat, {1, 2, 2}, {1, 2, 3, 4})}},
       {-4, -2, 22, 2}},
      {node("ConvTranspose", {"x", "w"}, {"y"},
            {integers("strides", {2}), integers("output_padding", {1}), integers("pads", {1, 0})}),
       {box({1, 2, 4}), {weight<float>("w", kFloat, {2, 1, 2}, {1, 2, 3, 4})}},
       {-4, 2, 2, 13, 20, -8.5f, -11, 0}},
      {node("ConvTranspose", {"x", "w"}, {"y"}, {integer("group", 2), integers("dilations", {2})}),
       {box({1, 2, 4}), {weight<float>("w", kFloat, {2, 1, 2}, {1, 2, 3, 4})}},
       {2, -1, 8, -1.5f, 8, 1, -6, 3, 1, -5, 12, -12}},
      {node("Mod", {"x", "d"}, {"y"}, {integer("fmod", 1)}),
       {box({8}), {weight<float>("d", kFloat, {}, {1.5f})}},
       {0.5f, -1, 1, 0.5f, -0.5f, 1, 0, -0}},
  };
  expect_answers(cases);
}

/// Epsilons matter where variances are as small as they are.
TEST(OnnxOperators, TakeTheEpsilonOfTheStandard) {
  const Tensor x = floats({1, 2, 4}, {2e-3f, -1e-3f, 4e-3f, 5e-4f, -2e-3f, 1e-3f, 3e-3f, -3e-3f});
  const std::vector<format::Tensor> weights{
      weight<float>("scale", kFloat, {2}, {1, 2}), weight<float>("shift", kFloat, {2}, {0.5f, -0.5f}),
      weight<float>("mean", kFloat, {2}, {5e-4f, -5e-4f}), weight<float>("variance", kFloat, {2}, {1e-5f, 3e-5f}),
      weight<float>("ones", kFloat, {4}, {1, 1, 1, 1})};
  const auto near = [&](const format::Node& n, const std::vector<float>& expected) {
    const std::vector<float> got = answer(n, {x, weights});
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], expected[i], 5e-6f) << n.op_type << " " << i;
  };
  near(node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"y"}),
       {0.83541024f, 0.16458978f, 1.2826238f, 0.5f, -0.97434169f, -0.02565831f, 0.60679728f, -1.2905695f});
  near(node("InstanceNormalization", {"x", "scale", "shift"}, {"y"}),
       {0.67059779f, -0.14827165f, 1.2165108f, 0.26116309f, -1.3836722f, 0.13119441f, 1.1411054f, -1.8886275f});
  near(node("LayerNormalization", {"x", "ones"}, {"y"}),
       {0.17059779f, -0.64827168f, 0.71651077f, -0.23883693f, -0.44183609f, 0.31559721f, 0.82055271f, -0.69431382f});
}

TEST(OnnxOperators, RefusesBlocksInAnotherOrder) {
  format::Node n = node("MatMulNBits", {"x", "w", "scales", "", "blocks"}, {"y"},
                        {integer("K", 32), integer("N", 1), integer("bits", 4), integer("block_size", 16)});
  n.domain = "com.microsoft";
  std::vector<float> x(32, 0);
  x[0] = 1;
  std::vector<int32_t> blocks(32, 0);
  std::fill(blocks.begin() + 16, blocks.end(), 1);
  const auto file = [&] {
    return model_of(n, {floats({1, 32}, x),
                        {weight<uint8_t>("w", format::DataType::uint8, {1, 2, 8}, std::vector<uint8_t>(16, 0x99)),
                         weight<float>("scales", kFloat, {2}, {1, 100}),
                         weight<int32_t>("blocks", kInt32, {static_cast<int64_t>(blocks.size())}, blocks)}});
  };
  Options options;
  options.opset = ir::Opset::ios18;
  EXPECT_EQ(run(imported(file(), options), floats({1, 32}, x)), (std::vector<float>{1}));
  std::reverse(blocks.begin(), blocks.end());
  EXPECT_NE(refusal(file(), options).find("g_idx (input 4) that gives columns the scales of other blocks"),
            std::string::npos);
  blocks.pop_back();
  EXPECT_NE(refusal(file(), options).find("31 elements of g_idx for K of 32"), std::string::npos);
}

TEST(OnnxOperators, ReshapesEmptyTensors) {
  struct Case {
    std::vector<int64_t> shape, sizes, expected;
  };
  const Case cases[] = {
      {{0, 3}, {0, -1}, {0, 3}},       {{2, 0}, {0, 0}, {2, 0}},  {{2, 0}, {0, -1}, {2, 0}},
      {{0, 4}, {0, 2, -1}, {0, 2, 2}}, {{0, 3}, {-1, 3}, {0, 3}}, {{0, 4}, {0, 3, -1}, {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.shape) + " to " + testing::PrintToString(c.sizes));
    // x without its rows or columns.
    std::vector<int64_t> whole = c.shape;
    const size_t axis = c.shape[0] == 0 ? 0 : 1;
    whole[axis] = 1;
    const auto file = model(
        {node("Slice", {"x", "zero", "zero", "axis"}, {"none"}), node("Reshape", {"none", "sizes"}, {"y"})},
        {tensor("x", kFloat, whole)}, {tensor("y", kFloat, {})},
        {weight<int64_t>("zero", kInt64, {1}, {0}), weight<int64_t>("axis", kInt64, {1}, {static_cast<int64_t>(axis)}),
         weight<int64_t>("sizes", kInt64, {static_cast<int64_t>(c.sizes.size())}, c.sizes)});
    if (c.expected.empty()) {
      EXPECT_NE(refusal(file), "accepted");
      continue;
    }
    const Tensor x = floats(Shape::make(whole).value(), std::vector<float>(static_cast<size_t>(whole[1 - axis]), 1));
    EXPECT_EQ(answers(imported(file), {x})[0].shape().to_vector(), c.expected);
  }
}

}  // namespace
}  // namespace moka::import::onnx
