// SPDX-License-Identifier: Apache-2.0
#include "moka/plugin.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "api/api_util.h"
#include "moka/build.h"
#include "moka/custom.h"

namespace moka::test {

namespace {

/// How many layers there are, and what the last one was told.
struct Seen {
  int alive = 0;
  std::string name, mode;
  double scale = 0;
};

struct Scaled {
  Seen* seen;
  double scale;
};

const char* create(void* context, const moka_layer_info* info, void** layer) {
  auto* seen = static_cast<Seen*>(context);
  seen->name = info->name;
  for (size_t i = 0; i < info->parameter_count; i++) {
    const moka_parameter& p = info->parameters[i];
    if (std::string(p.name) == "scale") seen->scale = p.number;
    if (std::string(p.name) == "mode") seen->mode = p.string;
  }
  if (seen->scale < 0) return "scale: expected 0 or more";
  seen->alive++;
  *layer = new Scaled{seen, seen->scale};
  return nullptr;
}

void destroy(void* layer) {
  auto* scaled = static_cast<Scaled*>(layer);
  scaled->seen->alive--;
  delete scaled;
}

const char* output_shapes(void*, size_t, const moka_shape* in, size_t, moka_shape* out) {
  out[0].rank = 1;
  out[0].sizes[0] = in[0].sizes[0] * in[0].sizes[1];
  return nullptr;
}

const char* evaluate(void* layer, const moka_layer_call* call) {
  const auto* x = static_cast<const float*>(call->inputs[0].data);
  auto* y = static_cast<float*>(call->outputs[0].data);
  if (call->inputs[0].rank != 2 || call->outputs[0].rank != 1) return "ranks";
  for (int64_t i = 0; i < call->outputs[0].shape[0]; i++)
    y[i] = static_cast<float>(static_cast<Scaled*>(layer)->scale) * x[i];
  return nullptr;
}

std::string scaled(const std::string& scale) {
  return program("tensor<fp32, [2, 2]> x",
                 " tensor<fp32, [4]> y = scaled(x = x, scale = fp32(" + scale +
                     "), mode = string(\"flat\"))[name = string(\"s\")];",
                 "y");
}

}  // namespace

TEST(Plugin, LayersInC) {
  Seen seen;
  moka_layer_type type{};
  type.struct_size = sizeof type;
  type.create = create;
  type.destroy = destroy;
  type.output_shapes = output_shapes;
  type.evaluate = evaluate;
  ASSERT_EQ(moka_register_operation("scaled", &type, &seen), MOKA_OK) << moka_last_error();
  {
    const Model model = Model::from_mil(scaled("2.5"));
    EXPECT_EQ(seen.alive, 1);
    EXPECT_EQ(seen.name, "s");
    EXPECT_EQ(seen.mode, "flat");
    const auto y = values(model.predict({{"x", MultiArray::of(std::vector<float>{1, 2, 3, 4}, {2, 2})}}).array("y"));
    EXPECT_EQ(y, (std::vector<double>{2.5, 5, 7.5, 10}));
  }
  EXPECT_EQ(seen.alive, 0);
  expect_error(ErrorKind::data, {"scaled", "scale: expected 0 or more"}, [] { Model::from_mil(scaled("-1")); });
  EXPECT_EQ(moka_unregister_operation("scaled"), MOKA_OK);
  EXPECT_EQ(moka_unregister_operation("scaled"), MOKA_NOT_FOUND);
}

TEST(Plugin, WrongRegistrationsAreRefused) {
  moka_layer_type type{};
  EXPECT_EQ(moka_register_layer("L", nullptr, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_register_layer("L", &type, nullptr), MOKA_INVALID_ARGUMENT);
  type.struct_size = sizeof type;
  EXPECT_EQ(moka_register_layer("L", &type, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(moka_last_error()).find("evaluate"), std::string::npos);
  type.evaluate = evaluate;
  EXPECT_EQ(moka_register_layer(nullptr, &type, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_register_operation("relu", &type, nullptr), MOKA_INVALID_ARGUMENT);
}

TEST(Plugin, SharedLibraries) {
  ASSERT_EQ(moka_load_plugin(MOKA_EXAMPLE_PLUGIN), MOKA_OK) << moka_last_error();
  const auto layers = registered_layers();
  EXPECT_NE(std::find(layers.begin(), layers.end(), "Swish"), layers.end());
  EXPECT_TRUE(unregister_layer("Swish"));
  EXPECT_EQ(moka_load_plugin("/nowhere/layers.so"), MOKA_NOT_FOUND);
  expect_error(ErrorKind::data, {"moka_plugin returned invalid argument", "registering 'Broken'", "evaluate"},
               [] { load_plugin(MOKA_FAILING_PLUGIN); });
  EXPECT_EQ(moka_load_plugin(nullptr), MOKA_INVALID_ARGUMENT);
  expect_error(ErrorKind::unsupported, {"moka_plugin"}, [] { load_plugin("/lib/x86_64-linux-gnu/libm.so.6"); });
}

namespace {

struct Lengths {
  int alive = 0;
  double scale = 0;
  std::string inputs, outputs;
};

const char* create_lengths(void* context, const moka_model_info* info, void** model) {
  auto* lengths = static_cast<Lengths*>(context);
  if (info->parameter_count != 1 || std::string(info->parameters[0].name) != "scale") return "expected a scale";
  lengths->scale = info->parameters[0].number;
  for (size_t i = 0; i < info->input_count; i++) lengths->inputs += info->inputs[i];
  for (size_t i = 0; i < info->output_count; i++) lengths->outputs += info->outputs[i];
  if (lengths->scale < 0) return "scale: expected 0 or more";
  lengths->alive++;
  *model = lengths;
  return nullptr;
}

void destroy_lengths(void* model) { static_cast<Lengths*>(model)->alive--; }

const char* predict_lengths(void* model, const moka_features* inputs, moka_features* outputs) {
  const char* text = nullptr;
  if (moka_features_get_string(inputs, "text", &text) != MOKA_OK) return moka_last_error();
  const auto size = static_cast<double>(std::string(text).size());
  if (size == 0) return "the text is empty";
  float pair[] = {1, static_cast<float>(size)};  // copied when predict returns
  const int64_t shape[] = {2};
  const moka_array array{pair, MOKA_FLOAT32, 1, shape, nullptr};
  moka_features_set_array(outputs, "pair", &array);
  return moka_features_set_double(outputs, "length", static_cast<Lengths*>(model)->scale * size) == MOKA_OK
             ? nullptr
             : moka_last_error();
}

ModelSource lengths_model(double scale, const char* class_name = "CLengths", bool with_pair = true) {
  FeatureDescription text, length, pair;
  text.name = "text";
  text.type = FeatureType::string;
  length.name = "length";
  length.type = FeatureType::float64;
  pair.name = "pair";
  pair.array.shape = {2};
  ModelDescription d;
  d.specification_version = 3;
  d.functions = {{"", {text}, {length}}};
  if (with_pair) d.functions[0].outputs.push_back(pair);
  Message model = describe_model(d);
  Message custom = model.add("customModel").set("className", class_name);
  Message entry = custom.add("parameters").set("key", "scale");
  entry.add("value").set("doubleValue", Message::Scalar(scale));
  return ModelSource(model);
}

}  // namespace

TEST(Plugin, ModelsInC) {
  Lengths lengths;
  const moka_model_code code{sizeof code, create_lengths, destroy_lengths, predict_lengths};
  ASSERT_EQ(moka_register_model("CLengths", &code, &lengths), MOKA_OK) << moka_last_error();
  {
    const Model model = lengths_model(2.5).load();
    EXPECT_EQ(lengths.alive, 1);
    EXPECT_EQ(lengths.inputs + "/" + lengths.outputs, "text/lengthpair");
    const Features out = model.predict({{"text", std::string("four")}});
    EXPECT_EQ(std::get<double>(out.at("length")), 10);
    EXPECT_EQ(values(out.array("pair")), (std::vector<double>{1, 4}));
    expect_error(ErrorKind::data, {"CLengths", "the text is empty"}, [&] { model.predict({{"text", std::string()}}); });
  }
  EXPECT_EQ(lengths.alive, 0);
  expect_error(ErrorKind::data, {"scale: expected 0 or more"}, [] { lengths_model(-1).load(); });
  EXPECT_EQ(moka_unregister_model("CLengths"), MOKA_OK);
  EXPECT_EQ(moka_unregister_model("CLengths"), MOKA_NOT_FOUND);
  expect_error(ErrorKind::unsupported, {"CLengths"}, [] { lengths_model(1).load(); });
}

TEST(Plugin, SharedLibrariesWithModels) {
  ASSERT_EQ(moka_load_plugin(MOKA_EXAMPLE_MODEL), MOKA_OK) << moka_last_error();
  const Features out = lengths_model(1.5, "Lengths", false).load().predict({{"text", std::string("four")}});
  EXPECT_EQ(std::get<double>(out.at("length")), 6);
  EXPECT_TRUE(unregister_model("Lengths"));
}

TEST(Plugin, WrongRegistrationsOfModelsAreRefused) {
  moka_model_code code{sizeof code, nullptr, nullptr, nullptr};
  EXPECT_EQ(moka_register_model("CLengths", &code, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(moka_last_error()).find("expected predict"), std::string::npos);
  code.struct_size = 8;
  EXPECT_EQ(moka_register_model("CLengths", &code, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_register_model(nullptr, &code, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_register_model_file("CLengths", nullptr), MOKA_INVALID_ARGUMENT);
  const char* folders[] = {"/nowhere", nullptr};
  EXPECT_EQ(moka_set_linked_model_folders(folders, 2), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_set_linked_model_folders(folders, 1), MOKA_OK);
  EXPECT_EQ(moka_set_linked_model_folders(nullptr, 0), MOKA_OK);
}

TEST(Plugin, ServesOneScopeAfterAnother) {
  const auto is_registered = [] {
    const std::vector<std::string> names = registered_layers();
    return std::find(names.begin(), names.end(), "Swish") != names.end();
  };
  for (int i = 0; i < 2; i++) {
    ASSERT_FALSE(is_registered());
    const RegistrationScope scope;
    load_plugin(MOKA_EXAMPLE_PLUGIN);
    EXPECT_TRUE(is_registered());
  }
  EXPECT_FALSE(is_registered());
}

}  // namespace moka::test
