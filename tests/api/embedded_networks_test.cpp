// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "api/api_util.h"
#include "moka/build.h"
#include "moka/compiler.h"
#include "temporary_folder.h"

/// Networks that keep their specification when they are compiled.
namespace moka::test {
namespace {

namespace fs = std::filesystem;

Message named_layer(Message network, const char* name, const char* in, const char* out) {
  return network.add("layers")
      .set("name", name)
      .set("input", std::vector<Message::Scalar>{std::string(in)})
      .set("output", std::vector<Message::Scalar>{std::string(out)});
}

/// relu, then a layer that `fill` makes.
ModelSource two_layers(const std::function<void(Message)>& fill, bool in_pipeline = false) {
  FeatureDescription x, y;
  x.name = "x";
  y.name = "y";
  x.array.shape = y.array.shape = {3, 2, 2};
  ModelDescription d;
  d.specification_version = 4;
  d.functions = {{"", {x}, {y}}};
  Message model = describe_model(d);
  Message network = model.add("neuralNetwork");
  named_layer(network, "first", "x", "a").add("activation").add("ReLU");
  fill(named_layer(network, "second", "a", "y"));
  if (!in_pipeline) return ModelSource(model);
  Message pipeline = describe_model(d);
  pipeline.add("pipeline").set("models", model);
  return ModelSource(pipeline);
}

struct Source {
  TemporaryFolder folder;
  std::string path, compiled;
  explicit Source(const ModelSource& model) {
    path = (folder / "m.mlmodel").string();
    compiled = (folder / "m.mlmodelc").string();
    model.save(path);
  }
};

void fill_clip(Message layer) { layer.add("clip").set("minVal", -1.0).set("maxVal", 1.0); }
void fill_shifted(Message layer) { layer.add("unary").set("type", "EXP").set("shift", 1.0).set("scale", 1.0); }
void fill_relu(Message layer) { layer.add("activation").add("ReLU"); }

}  // namespace

TEST(EmbeddedNetworks, NameTheLayerAndTheReason) {
  const Source clip(two_layers(fill_clip));
  auto embedded = compile_model(clip.path, clip.compiled);
  ASSERT_EQ(embedded.size(), 1u);
  EXPECT_EQ(embedded[0].model, "");
  EXPECT_EQ(embedded[0].layer, "second");
  EXPECT_EQ(embedded[0].type, "clip");
  EXPECT_EQ(embedded[0].reason, "layers of this type");
  EXPECT_EQ(embedded[0].text,
            "the network keeps its specification, a form that only Moka reads: layer 'second' (clip): no compiled form "
            "is known of layers of this type");
  const Source shifted(two_layers(fill_shifted, true));
  embedded = compile_model(shifted.path, shifted.compiled);
  ASSERT_EQ(embedded.size(), 1u);
  EXPECT_EQ(embedded[0].model, "model0");
  EXPECT_EQ(embedded[0].type, "unary");
  EXPECT_EQ(embedded[0].reason, "a scale or shift of the input");
  EXPECT_FALSE(fs::exists(fs::path(shifted.compiled) / "model0" / "model.espresso.net"));
}

TEST(EmbeddedNetworks, AreNotReportedWhereNoneAre) {
  const Source relu(two_layers(fill_relu));
  EXPECT_TRUE(compile_model(relu.path, relu.compiled, {.strict = true}).empty());
  EXPECT_TRUE(fs::exists(fs::path(relu.compiled) / "model.espresso.net"));
  const Source clip(two_layers(fill_clip));
  EXPECT_TRUE(compile_model(clip.path, clip.compiled, {.embed_specification = true}).empty());
}

TEST(EmbeddedNetworks, AreRefusedByStrict) {
  for (const bool in_pipeline : {false, true}) {
    const Source clip(two_layers(fill_clip, in_pipeline));
    expect_error(ErrorKind::unsupported, {"layer 'second' (clip)", "no compiled form is known"},
                 [&] { compile_model(clip.path, clip.compiled, {.strict = true}); });
    EXPECT_FALSE(fs::exists(clip.compiled));
  }
}

}  // namespace moka::test
