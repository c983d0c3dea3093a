// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "lint_util.h"
#include "moka/edit.h"

/// Faults that were reported for coremltools, planted into small models. docs/linting.md names the reports.
namespace moka::lint_test {
namespace {

lint::Options ranged(double low, double high, const std::string& name = "x") {
  lint::Options options;
  options.ranges[name] = {low, high};
  return options;
}

/// x [1, 8] -> `build` -> y, in float16.
ModelSource half_program(const std::function<Value(ProgramBuilder&, Value)>& build,
                         const std::string& opset = "ios17") {
  ProgramBuilder b(opset);
  const Value x = half_input(b, "x", {1, 8});
  float_output(b, build(b, x));
  return b.source();
}

Value half_scalar(ProgramBuilder& b, float v, const std::string& name) {
  return b.constant(array({v}, {1}), "fp16", name);
}

TEST(Planted, AnActivationOverflowsOnTheGivenData) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    return b.op("mul", {{"x", x}, {"y", half_scalar(b, 60000, "big")}}, "scaled");
  });
  EXPECT_TRUE(finds(report(model, ranged(0, 100)), "float16-overflow", "'scaled'", kError));
  EXPECT_TRUE(found(model, ranged(0, 1)).empty());
}

TEST(Planted, AnAttentionProductOverflows) {
  ProgramBuilder b("ios17");
  const Value q = half_input(b, "q", {1, 4, 64}), k = half_input(b, "k", {1, 4, 64});
  float_output(
      b, b.op("softmax", {{"x", b.op("matmul", {{"x", q}, {"y", k}, {"transpose_y", true}}, "scores")}, {"axis", -1}}));
  lint::Options options = ranged(0, 100, "q");
  options.ranges["k"] = {0, 100};
  EXPECT_TRUE(finds(report(b.source(), options), "float16-overflow", "'scores'", kError));
}

TEST(Planted, AnImageTimesALargeScaleOverflows) {
  ProgramBuilder b("ios17");
  const Value x = b.op("cast", {{"x", b.input(image("image", 8, 8))}, {"dtype", "fp16"}}, "half");
  const Value scaled = b.op("mul", {{"x", x}, {"y", half_scalar(b, 300, "scale")}}, "scaled");
  float_output(b, b.op("reduce_max", {{"x", scaled}, {"axes", std::vector<int>{1, 2, 3}}}));
  lint::Options still;
  still.predict = false;
  EXPECT_TRUE(finds(report(b.source(), still), "float16-overflow", "'scaled'", kWarning));
}

TEST(Planted, ResultsBecomeZero) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    const Value small = b.op("mul", {{"x", x}, {"y", half_scalar(b, 1e-4f, "a")}}, "small");
    return b.op("mul", {{"x", small}, {"y", half_scalar(b, 1e-4f, "b")}}, "smaller");
  });
  EXPECT_TRUE(finds(report(model), "float16-underflow", "'smaller'", kWarning));
}

TEST(Planted, AMaskIsMultipliedByInfinity) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    const Value keep = b.op("clip", {{"x", x}, {"alpha", 0.0f}, {"beta", 1.0f}}, "keep");
    const Value mask = b.op("mul", {{"x", keep}, {"y", half_scalar(b, -INFINITY, "inf")}}, "mask");
    return b.op("softmax", {{"x", b.op("add", {{"x", x}, {"y", mask}}, "masked")}, {"axis", -1}});
  });
  EXPECT_TRUE(finds(report(model), "infinite-mask", "'mask'", kError));
}

TEST(Planted, ASentinelOfFloat32IsInfiniteAfterTheCast) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 8});
  const Value is_padding = b.op("greater", {{"x", x}, {"y", 0.5f}}, "padding");
  const Value mask = b.op("select", {{"cond", is_padding}, {"a", -3.4028e38f}, {"b", 0.0f}}, "mask");
  const Value half = b.op("cast", {{"x", mask}, {"dtype", "fp16"}}, "mask_half");
  float_output(b, b.op("softmax", {{"x", half}, {"axis", -1}}));
  EXPECT_TRUE(finds(report(b.source()), "float16-overflow", "'mask_half'", kError));
}

TEST(Planted, AWholeRowIsMaskedByInfinity) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    const Value keep = b.op("greater", {{"x", x}, {"y", half_scalar(b, 0.5f, "limit")}}, "keep");
    const Value masked = b.op("select", {{"cond", keep}, {"a", x}, {"b", half_scalar(b, -INFINITY, "inf")}}, "masked");
    return b.op("softmax", {{"x", masked}, {"axis", -1}});
  });
  EXPECT_TRUE(finds(report(model), "infinite-mask", "'masked'", kWarning));
}

TEST(Planted, TwoMasksAddUpToInfinity) {
  ProgramBuilder b("ios17");
  const Value x = half_input(b, "x", {1, 8});
  const auto mask_of = [&](float limit, const std::string& name) {
    const Value is_hidden = b.op("greater", {{"x", x}, {"y", half_scalar(b, limit, name + "_limit")}});
    return b.op(
        "select",
        {{"cond", is_hidden}, {"a", half_scalar(b, -65504, name + "_low")}, {"b", half_scalar(b, 0, name + "_zero")}},
        name);
  };
  const Value both = b.op("add", {{"x", mask_of(0.5f, "causal")}, {"y", mask_of(0.7f, "padding")}}, "both");
  float_output(b, b.op("softmax", {{"x", b.op("add", {{"x", x}, {"y", both}})}, {"axis", -1}}));
  EXPECT_TRUE(finds(report(b.source()), "infinite-mask", "'both'", kWarning));
}

TEST(Planted, SoftplusHasACliff) {
  const auto softplus = [](ProgramBuilder& b, Value x) { return b.op("softplus", {{"x", x}}, "plus"); };
  EXPECT_TRUE(finds(report(half_program(softplus), ranged(0, 40)), "exponential-sum", "'plus'", kWarning));
  EXPECT_TRUE(finds(report(half_program(softplus)), "exponential-sum", "'plus'", kNote));
  EXPECT_TRUE(found(half_program(softplus), ranged(-5, 5)).empty());
}

TEST(Planted, SoftplusByHandOverflows) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    const Value e = b.op("exp", {{"x", x}}, "e");
    return b.op("log", {{"x", b.op("add", {{"x", e}, {"y", half_scalar(b, 1, "one")}})}, {"epsilon", 0.0f}}, "plus");
  });
  EXPECT_TRUE(finds(report(model), "exponential-sum", "'plus'", kWarning));
}

TEST(Planted, TheLogarithmOfASoftmaxIsInfinite) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    return b.op("log", {{"x", b.op("softmax", {{"x", x}, {"axis", -1}})}, {"epsilon", 0.0f}}, "log_softmax");
  });
  EXPECT_TRUE(finds(report(model), "exponential-sum", "'log_softmax'", kWarning));
}

TEST(Planted, LogCumSumExpHasNoShift) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    const Value sum = b.op("cumsum", {{"x", b.op("exp", {{"x", x}})}, {"axis", -1}});
    return b.op("log", {{"x", sum}, {"epsilon", 0.0f}}, "result");
  });
  EXPECT_TRUE(finds(report(model), "exponential-sum", "'result'", kWarning));
}

TEST(Planted, LogSumExpHasACliff) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    return b.op("reduce_log_sum_exp", {{"x", x}, {"axes", std::vector<int>{1}}}, "lse");
  });
  EXPECT_TRUE(finds(report(model, ranged(0, 20)), "exponential-sum", "'lse'", kWarning));
}

TEST(Planted, ASoftmaxByHandOverflows) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    const Value e = b.op("exp", {{"x", x}}, "e");
    const Value sum = b.op("reduce_sum", {{"x", e}, {"axes", std::vector<int>{1}}, {"keep_dims", true}});
    return b.op("real_div", {{"x", e}, {"y", sum}}, "probability");
  });
  EXPECT_TRUE(finds(report(model), "exponential-sum", "'probability'", kWarning));
}

TEST(Planted, ANormAddsUpSquares) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    const Value square = b.op("square", {{"x", x}});
    const Value mean =
        b.op("reduce_mean", {{"x", square}, {"axes", std::vector<int>{1}}, {"keep_dims", true}}, "variance");
    const Value root =
        b.op("rsqrt", {{"x", b.op("add", {{"x", mean}, {"y", half_scalar(b, 1e-3f, "eps")}})}, {"epsilon", 0.0f}});
    return b.op("mul", {{"x", x}, {"y", root}});
  });
  EXPECT_TRUE(finds(report(model, ranged(-300, 300)), "square-sum", "'variance'", kWarning));
  EXPECT_TRUE(finds(report(model), "square-sum", "'variance'", kNote));
}

TEST(Planted, AnEpsilonIsZeroInFloat16) {
  const ModelSource norm = half_program([](ProgramBuilder& b, Value x) {
    return b.op("layer_norm", {{"x", x}, {"axes", std::vector<int>{1}}, {"epsilon", 1e-12f}}, "norm");
  });
  EXPECT_TRUE(finds(report(norm), "small-epsilon", "'norm'", kWarning));
  const ModelSource division = half_program([](ProgramBuilder& b, Value x) {
    const Value size =
        b.op("reduce_sum", {{"x", b.op("abs", {{"x", x}})}, {"axes", std::vector<int>{1}}, {"keep_dims", true}});
    const Value guard = b.op("maximum", {{"x", size}, {"y", half_scalar(b, 1e-12f, "eps")}}, "guard");
    return b.op("real_div", {{"x", x}, {"y", guard}});
  });
  EXPECT_TRUE(finds(report(division), "small-epsilon", "'guard'", kWarning));
}

TEST(Planted, PositionsBeyond2048AreRounded) {
  ProgramBuilder b("ios17");
  const Value ids = b.input("ids", DataType::int32, {1, 8});
  const Value half = b.op("cast", {{"x", ids}, {"dtype", "fp16"}}, "positions");
  float_output(b, b.op("mul", {{"x", half}, {"y", half_scalar(b, 0.5f, "step")}}));
  EXPECT_TRUE(finds(report(b.source(), ranged(0, 30000, "ids")), "float16-integer", "'positions'", kWarning));
}

TEST(Planted, AMeanAddsUpTooMuch) {
  ProgramBuilder b("ios17");
  const Value x = half_input(b, "x", {1, 4, 64, 64});
  float_output(b, b.op("reduce_mean", {{"x", x}, {"axes", std::vector<int>{2, 3}}}, "mean"));
  EXPECT_TRUE(finds(report(b.source(), ranged(0, 100)), "float16-sum", "'mean'", kWarning));
}

TEST(Planted, AWeightBeyondFloat16IsInfinite) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) {
    MultiArray w = noise({8, 8});
    w.as<float>()[3] = 70000;
    return b.op("linear", {{"x", x}, {"weight", b.constant(w, "fp16", "w")}}, "dense");
  });
  EXPECT_TRUE(finds(report(model), "weight-range", "'w", kError));
}

TEST(Planted, AWeightThatWouldNotSurviveFloat16) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 8});
  b.output(b.op("linear", {{"x", x}, {"weight", b.constant(noise({8, 8}, 1e-7f), "fp32", "w")}}, "y"));
  lint::Options options;
  options.as_float16 = true;
  EXPECT_TRUE(finds(report(b.source(), options), "weight-range", "'w", kWarning));
  EXPECT_TRUE(found(b.source()).empty());
}

TEST(Planted, AnImageIsScaledTwice) {
  const auto net = [](float scale, const std::vector<float>& bias) {
    ProgramBuilder b("ios17");
    const Value x = b.op("mul", {{"x", b.input(image("image", 8, 8))}, {"y", scale}}, "scaled");
    const Value shifted = b.op("add", {{"x", x}, {"y", array(bias, {1, 3, 1, 1})}}, "shifted");
    b.output(b.op("conv", {{"x", shifted}, {"weight", noise({4, 3, 3, 3})}, {"pad_type", "same"}}, "y"));
    return b.source();
  };
  EXPECT_TRUE(finds(report(net(1 / 255.f / 255, {0, 0, 0.01f})), "image-scale", "'image'", kWarning));
  EXPECT_TRUE(finds(report(net(1 / 255.f / 0.226f, {2.1f, 2.0f, 1.8f})), "image-scale", "'image'", kWarning));  // sign
  EXPECT_TRUE(finds(report(net(1 / 255.f / 0.226f, {-0.485f, -0.456f, -0.406f})), "image-scale", "'image'", kWarning));
  EXPECT_TRUE(finds(report(net(0.017f, {-123.68f, -116.78f, -103.94f})), "image-scale", "'image'", kWarning));
  EXPECT_TRUE(found(net(1 / 255.f / 0.226f, {-0.485f / 0.226f, -0.456f / 0.226f, -0.406f / 0.226f})).empty());
  EXPECT_TRUE(found(net(1 / 127.5f, {-1, -1, -1})).empty());
}

TEST(Planted, ASigmoidAsAPictureIsBlack) {
  ProgramBuilder b("ios17");
  const Value x = b.op("mul", {{"x", b.input(image("image", 8, 8))}, {"y", 1 / 255.f}});
  const Value y = b.op(
      "sigmoid", {{"x", b.op("conv", {{"x", x}, {"weight", noise({3, 3, 3, 3})}, {"pad_type", "same"}})}}, "picture");
  b.image_output(y, ColorSpace::rgb, "stylized");
  EXPECT_TRUE(finds(report(b.source()), "image-output", "'stylized'", kWarning));
}

TEST(Planted, ARankOfSixIsRefused) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 4, 4, 4});
  const Value six = b.op("reshape", {{"x", x}, {"shape", std::vector<int>{1, 4, 2, 2, 2, 2}}}, "six");
  b.output(b.op("reshape", {{"x", six}, {"shape", std::vector<int>{1, 64}}}, "y"));
  EXPECT_TRUE(finds(report(b.source()), "tensor-rank", "'six'", kError));
}

TEST(Planted, AnEnumeratedShapeFails) {
  ProgramBuilder b("ios17");
  FeatureDescription f;
  f.name = "x";
  f.array.shape = {1, 8};
  f.array.enumerated = {{1, 8}, {1, 16}, {1, 18}};
  const Value x = b.input(f);
  b.output(b.op("reshape", {{"x", x}, {"shape", std::vector<int>{-1, 8}}}, "y"));
  const lint::Report r = report(b.source());
  EXPECT_TRUE(finds(r, "flexible-shape", "1 x 18", kError));
  EXPECT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.sizes, 2u);
}

TEST(Planted, TheEndOfARangeFails) {
  ProgramBuilder b("ios17");
  FeatureDescription f;
  f.name = "x";
  f.array.shape = {1, 1, 16};
  f.array.ranges = {{1, 1}, {1, 1}, {2, 64}};
  b.output(b.op("max_pool",
                {{"x", b.input(f)},
                 {"kernel_sizes", std::vector<int>{4}},
                 {"strides", std::vector<int>{4}},
                 {"pad_type", "valid"}},
                "y"));
  EXPECT_TRUE(finds(report(b.source()), "flexible-shape", "1 x 1 x 2", kError));
}

TEST(Planted, AnInputIsNotRead) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 8});
  b.input("mask", DataType::float32, {1, 8});
  b.output(b.op("relu", {{"x", x}}, "y"));
  EXPECT_EQ(found(b.source()), std::vector<std::string>{"warning unused-input input 'mask'"});
}

TEST(Planted, NoOutputDependsOnAnInput) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 8}), mask = b.input("mask", DataType::float32, {1, 8});
  b.op("identity", {{"x", b.op("identity", {{"x", mask}}, "first")}}, "second");
  b.output(b.op("relu", {{"x", x}}, "y"));
  lint::Options options;
  options.only = {"unused-input"};
  const lint::Report report = lint_test::report(b.source(), options);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].place, "input 'mask'");
  EXPECT_EQ(report.findings[0].reason, "no output depends on it");
}

/// What only a branch reads is needed.
TEST(Planted, ABranchDependsOnAnInput) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 8}), y = b.input("y", DataType::float32, {1, 8});
  const Value is_large = b.op("greater", {{"x", b.op("reduce_sum", {{"x", x}, {"keep_dims", false}})}, {"y", 0.0f}});
  using Values = std::vector<Value>;
  const auto branch = [&](const char* type, Value v) {
    return [&b, type, v](const Values&) { return Values{b.op(type, {{"x", v}})}; };
  };
  b.output(b.control("cond", {{"pred", is_large}}, {branch("relu", y), branch("abs", x)}, "z")[0]);
  lint::Options options;
  options.only = {"unused-input", "unused-operation"};
  EXPECT_TRUE(found(b.source(), options).empty());
}

TEST(Planted, AnOutputIsBakedIn) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 8});
  b.output(b.op("relu", {{"x", x}}, "y"));
  b.output(b.op("identity", {{"x", b.constant(noise({1, 4}), "fp32", "c")}}, "length"));
  EXPECT_TRUE(finds(report(b.source()), "constant-output", "'length'", kWarning));
}

TEST(Planted, AValueIsNamedLikeAWordOfTheCompiler) {
  const ModelSource model = half_program([](ProgramBuilder& b, Value x) { return b.op("relu", {{"x", x}}, "middle"); });
  EXPECT_TRUE(finds(report(edit::rename_values(model, {{"middle", "tensor"}})), "value-name", "'tensor'", kError));
}

TEST(Planted, NamesMakeBadSwift) {
  const lint::Report r = report(network("input.1", "default"));
  EXPECT_TRUE(finds(r, "swift-name", "input 'input.1'", kWarning));
  EXPECT_TRUE(finds(r, "swift-name", "output 'default'", kWarning));
}

TEST(Planted, AStateNeedsANewerSystem) {
  ProgramBuilder b("ios18");
  const Value cache = b.state("cache", DataType::float16, {1, 8});
  const Value x = half_input(b, "x", {1, 8});
  const Value sum = b.op("add", {{"x", b.op("read_state", {{"input", cache}})}, {"y", x}});
  b.op("coreml_update_state", {{"state", cache}, {"value", sum}});
  float_output(b, sum);
  lint::Options options;
  EXPECT_TRUE(found(b.source()).empty());
  options.target = "ios17";
  const lint::Report r = report(b.source(), options);
  EXPECT_TRUE(finds(r, "system-version", "model", kError));
  EXPECT_TRUE(finds(r, "system-version", "(read_state)", kError));
}

TEST(Planted, TheDeclaredVersionIsTooOld) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float16, {1, 8});
  b.output(b.op("relu", {{"x", x}}, "y"));
  const ModelSource model = b.source();
  model.specification().set("specificationVersion", 6);
  EXPECT_TRUE(finds(report(model), "system-version", "model", kError));
}

TEST(Planted, AnOperationIsNewerThanTheOpset) {
  ProgramBuilder b("ios18");
  const Value q = b.input("q", DataType::float32, {1, 2, 4, 8});
  b.output(b.op("scaled_dot_product_attention", {{"query", q}, {"key", q}, {"value", q}}, "attention"));
  const ModelSource model = b.source();
  Message functions = model.specification().at("mlProgram").at("functions").at("value");
  functions.set("opset", "CoreML6");
  functions.at("block_specializations").set("key", "CoreML6");
  EXPECT_TRUE(finds(report(model), "system-version", "'attention'", kError));
}

TEST(Planted, TooManySizesAreEnumerated) {
  ProgramBuilder b("ios17");
  FeatureDescription f;
  f.name = "x";
  f.array.shape = {1, 1};
  for (int64_t size = 1; size <= 129; ++size) f.array.enumerated.push_back({1, size});
  b.output(b.op("relu", {{"x", b.input(f)}}, "y"));
  EXPECT_TRUE(finds(report(b.source()), "size-count", "'x'", kError));
}

TEST(Planted, ANetworkOverflowsOnGivenData) {
  const ModelSource model = edit::normalize(network("x", "y"), "x", {0}, {1e-4});
  EXPECT_TRUE(finds(report(model, ranged(0, 100)), "float16-overflow", "operation", kError));
  EXPECT_TRUE(found(network("x", "y"), ranged(0, 100)).empty());
}

TEST(Planted, TransposesCancel) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 8, 8, 4});
  const Value a = b.op("transpose", {{"x", x}, {"perm", std::vector<int>{0, 3, 1, 2}}}, "first");
  const Value c = b.op("transpose", {{"x", a}, {"perm", std::vector<int>{0, 2, 3, 1}}}, "second");
  b.output(b.op("relu", {{"x", c}}, "y"));
  EXPECT_TRUE(finds(report(b.source()), "idle-operation", "'second'", kWarning));
}

TEST(Planted, ConvolutionsStandBetweenTransposes) {
  ProgramBuilder b("ios17");
  Value x = b.input("x", DataType::float32, {1, 8, 8, 4});
  for (int i = 0; i < 2; ++i) {
    const Value a = b.op("transpose", {{"x", x}, {"perm", std::vector<int>{0, 3, 1, 2}}});
    const Value c = b.op(
        "conv", {{"x", a}, {"weight", noise({4, 4, 3, 3}, 1, 7u + static_cast<unsigned>(i))}, {"pad_type", "same"}},
        "conv_" + std::to_string(i));
    x = b.op("relu", {{"x", b.op("transpose", {{"x", c}, {"perm", std::vector<int>{0, 2, 3, 1}}})}},
             "relu_" + std::to_string(i));
  }
  b.output(x, "y");
  EXPECT_TRUE(finds(report(b.source()), "channels-last", "'conv_0'", kWarning));
}

TEST(Planted, AResultIsNotANumber) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 8});
  b.output(b.op("sqrt", {{"x", b.op("sub", {{"x", x}, {"y", 3.0f}})}}, "y"));
  EXPECT_TRUE(finds(report(b.source(), ranged(0, 1)), "not-a-number", "'y'", kError));
  // Random inputs prove nothing about real ones.
  EXPECT_TRUE(finds(report(b.source()), "not-a-number", "'y'", kWarning));
}

}  // namespace
}  // namespace moka::lint_test
