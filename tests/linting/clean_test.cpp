// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "lint_util.h"
#include "models_folder.h"

/// Models without faults, about which lint says nothing.
namespace moka::lint_test {
namespace {

/// Layers in float16, as coremltools converts nets of torchvision.
class Net {
 public:
  explicit Net(int64_t size) {
    const Value x = b.op("mul", {{"x", b.input(image("image", size, size))}, {"y", 1 / 255.f / 0.226f}}, "scaled");
    const Value shift = b.constant(array({-0.485f / 0.226f, -0.456f / 0.226f, -0.406f / 0.226f}, {1, 3, 1, 1}), "fp32");
    x_ = b.op("cast", {{"x", b.op("add", {{"x", x}, {"y", shift}}, "shifted")}, {"dtype", "fp16"}}, "half");
  }
  Value conv(Value x, int64_t in, int64_t out, int64_t kernel, int stride = 1, int64_t groups = 1) {
    const float scale = 1.5f / std::sqrt(static_cast<float>(in / groups * kernel * kernel));
    const Value weight = b.constant(noise({out, in / groups, kernel, kernel}, scale, ++seed_), "fp16");
    const Value bias = b.constant(noise({out}, 0.1f, ++seed_), "fp16");
    return b.op("conv", {{"x", x},
                         {"weight", weight},
                         {"bias", bias},
                         {"strides", std::vector<int>{stride, stride}},
                         {"groups", static_cast<int>(groups)},
                         {"pad_type", "same"}});
  }
  Value op(const std::string& type, Arguments arguments) { return b.op(type, std::move(arguments)); }
  Value relu(Value x) { return op("relu", {{"x", x}}); }
  Value relu6(Value x) { return op("relu6", {{"x", x}}); }
  ModelSource classes(Value x, int64_t channels) {
    const Value pooled = op("reduce_mean", {{"x", x}, {"axes", std::vector<int>{2, 3}}, {"keep_dims", false}});
    const Value logits =
        op("linear", {{"x", pooled}, {"weight", b.constant(noise({10, channels}, 0.3f, ++seed_), "fp16")}});
    float_output(b, logits, "logits");
    return b.source();
  }
  Value image_value() const { return x_; }
  ProgramBuilder b{"ios15"};

 private:
  Value x_;
  unsigned seed_ = 10;
};

ModelSource resnet() {
  Net n(32);
  Value x = n.op("max_pool", {{"x", n.relu(n.conv(n.image_value(), 3, 16, 7, 2))},
                              {"kernel_sizes", std::vector<int>{3, 3}},
                              {"strides", std::vector<int>{2, 2}},
                              {"pad_type", "custom"},
                              {"pad", std::vector<int>{1, 1, 1, 1}}});
  for (int i = 0; i < 2; ++i) {
    const Value y = n.conv(n.relu(n.conv(x, 16, 16, 3)), 16, 16, 3);
    x = n.relu(n.op("add", {{"x", y}, {"y", x}}));
  }
  return n.classes(x, 16);
}

ModelSource mobilenet() {
  Net n(32);
  Value x = n.relu6(n.conv(n.image_value(), 3, 8, 3, 2));
  for (int i = 0; i < 2; ++i) {
    const Value wide = n.relu6(n.conv(x, 8, 48, 1)), deep = n.relu6(n.conv(wide, 48, 48, 3, 1, 48));
    x = n.op("add", {{"x", x}, {"y", n.conv(deep, 48, 8, 1)}});
  }
  return n.classes(x, 8);
}

ModelSource squeezenet() {
  Net n(32);
  const Value squeezed = n.relu(n.conv(n.relu(n.conv(n.image_value(), 3, 16, 3, 2)), 16, 4, 1));
  const Value x = n.op(
      "concat", {{"values", std::vector<Value>{n.relu(n.conv(squeezed, 4, 16, 1)), n.relu(n.conv(squeezed, 4, 16, 3))}},
                 {"axis", 1},
                 {"interleave", false}});
  return n.classes(x, 32);
}

ModelSource shufflenet() {
  Net n(32);
  const Value x = n.relu(n.conv(n.image_value(), 3, 16, 3, 2));
  const std::vector<Value> halves = n.b.ops("split", {{"x", x}, {"num_splits", 2}, {"axis", 1}});
  const Value joined = n.op("concat", {{"values", std::vector<Value>{halves[0], n.relu(n.conv(halves[1], 8, 8, 3))}},
                                       {"axis", 1},
                                       {"interleave", false}});
  const Value split = n.op("reshape", {{"x", joined}, {"shape", std::vector<int>{1, 2, 8, 16, 16}}});
  const Value shuffled = n.op("transpose", {{"x", split}, {"perm", std::vector<int>{0, 2, 1, 3, 4}}});
  return n.classes(n.op("reshape", {{"x", shuffled}, {"shape", std::vector<int>{1, 16, 16, 16}}}), 16);
}

ModelSource efficientnet() {
  Net n(32);
  const Value x = n.op("silu", {{"x", n.conv(n.image_value(), 3, 16, 3, 2)}});
  const Value pooled = n.op("reduce_mean", {{"x", x}, {"axes", std::vector<int>{2, 3}}, {"keep_dims", true}});
  const Value gate = n.op("sigmoid", {{"x", n.conv(n.op("silu", {{"x", n.conv(pooled, 16, 4, 1)}}), 4, 16, 1)}});
  return n.classes(n.op("mul", {{"x", x}, {"y", gate}}), 16);
}

ModelSource transformer() {
  Net n(32);
  const Value patches =
      n.op("reshape", {{"x", n.conv(n.image_value(), 3, 32, 8, 8)}, {"shape", std::vector<int>{1, 32, 16}}});
  const Value x = n.op("transpose", {{"x", patches}, {"perm", std::vector<int>{0, 2, 1}}});
  const Value norm = n.op("layer_norm", {{"x", x}, {"axes", std::vector<int>{-1}}, {"epsilon", 1e-6f}});
  const auto dense = [&](Value v, unsigned seed) {
    return n.op("linear", {{"x", v}, {"weight", n.b.constant(noise({32, 32}, 0.3f, seed), "fp16")}});
  };
  const Value q = n.op("mul", {{"x", dense(norm, 101)}, {"y", 0.17677f}});
  const Value scores = n.op("matmul", {{"x", q}, {"y", dense(norm, 102)}, {"transpose_y", true}});
  const Value mixed = n.op("matmul", {{"x", n.op("softmax", {{"x", scores}, {"axis", -1}})}, {"y", dense(norm, 103)}});
  const Value y = n.op("gelu", {{"x", dense(n.op("add", {{"x", x}, {"y", mixed}}), 104)}, {"mode", "EXACT"}});
  float_output(n.b, n.op("reduce_mean", {{"x", y}, {"axes", std::vector<int>{1}}, {"keep_dims", false}}), "features");
  return n.b.source();
}

TEST(Clean, NetsOfThePatternsOfTorchvision) {
  const std::pair<const char*, std::function<ModelSource()>> nets[] = {
      {"ResNet", resnet},         {"MobileNetV2", mobilenet},     {"SqueezeNet", squeezenet},
      {"ShuffleNet", shufflenet}, {"EfficientNet", efficientnet}, {"ViT", transformer}};
  for (const auto& [name, net] : nets) EXPECT_EQ(found(net()), std::vector<std::string>{}) << name;
}

TEST(Clean, PublishedModels) {
  MOKA_NEEDS_MODELS(models);
  for (const char* name :
       {"basic_pitch/nmp.mlpackage", "image_nn/MNIST.mlmodel", "image_nn/TinyDrawingEmbedding.mlmodel",
        "custom_and_image_io/Image2Image.mlmodel", "image_quality/ImageQualityCP20.mlmodel",
        "seq2seq_lstm/Es2EnCharDecoder.mlmodel", "sentiment_glm/SentimentPolarity.mlmodel",
        "glm_sleep/SleepCalculator.mlmodel", "misc_small/onehot_simple.mlmodel"}) {
    const lint::Report r = lint::check((*models / name).string());
    EXPECT_TRUE(r.findings.empty()) << name << ": " << r.findings[0].rule << " " << r.findings[0].place;
  }
}

}  // namespace
}  // namespace moka::lint_test
