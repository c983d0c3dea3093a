// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "compiler/compiler.h"
#include "compiler/decompile.h"
#include "format/mlmodelc/coremldata.h"
#include "format/proto/model.pb.h"
#include "temporary_folder.h"

/// Models of which the application or Apple's systems have a part. Compiling needs no implementation of it.
namespace moka::compiler {
namespace {

using nlohmann::json;
using proto::Model;

Result<Files> compile_bytes(const std::string& specification) {
  auto file = format::open_model_bytes(Bytes::from(specification), {});
  if (!file.ok()) return std::move(file).error();
  return compile(*file, "m");
}

proto::FeatureType& add(google::protobuf::RepeatedPtrField<proto::FeatureDescription>& to, const char* name) {
  auto& f = *to.Add();
  f.set_name(name);
  return *f.mutable_type();
}

void set_array(proto::FeatureType& type, std::initializer_list<int64_t> shape) {
  auto& array = *type.mutable_multiarraytype();
  array.set_datatype(proto::ArrayFeatureType::DOUBLE);
  for (int64_t size : shape) array.add_shape(size);
}

struct Kind {
  const char* name;
  std::function<void(Model&)> fill;
};

void text_to_text(Model& m) {
  add(*m.mutable_description()->mutable_input(), "text").mutable_stringtype();
  add(*m.mutable_description()->mutable_output(), "label").mutable_stringtype();
}

void image_to_array(Model& m, int64_t elements) {
  auto& image = *add(*m.mutable_description()->mutable_input(), "image").mutable_imagetype();
  image.set_width(299);
  image.set_height(299);
  image.set_colorspace(proto::ImageFeatureType::BGR);
  set_array(add(*m.mutable_description()->mutable_output(), "features"), {elements});
}

const Kind kKinds[] = {
    {"textClassifier",
     [](Model& m) {
       text_to_text(m);
       m.mutable_textclassifier()->set_revision(1);
       m.mutable_textclassifier()->mutable_stringclasslabels()->add_vector("spam");
     }},
    {"wordTagger",
     [](Model& m) {
       text_to_text(m);
       m.mutable_wordtagger()->set_revision(1);
       m.mutable_wordtagger()->mutable_stringtags()->add_vector("noun");
     }},
    {"gazetteer",
     [](Model& m) {
       text_to_text(m);
       m.mutable_gazetteer()->set_revision(2);
     }},
    {"wordEmbedding",
     [](Model& m) {
       text_to_text(m);
       m.mutable_wordembedding()->set_revision(2);
     }},
    {"visionFeaturePrint",
     [](Model& m) {
       image_to_array(m, 768);
       m.mutable_visionfeatureprint()->mutable_scene()->set_version(
           proto::CoreMLModels::VisionFeaturePrint::Scene::SCENE_VERSION_2);
     }},
    {"audioFeaturePrint",
     [](Model& m) {
       set_array(add(*m.mutable_description()->mutable_input(), "samples"), {15600});
       set_array(add(*m.mutable_description()->mutable_output(), "features"), {512});
       m.mutable_audiofeatureprint()->mutable_sound()->set_version(
           proto::CoreMLModels::AudioFeaturePrint::Sound::SOUND_VERSION_1);
     }},
    {"soundAnalysisPreprocessing",
     [](Model& m) {
       set_array(add(*m.mutable_description()->mutable_input(), "samples"), {15600});
       set_array(add(*m.mutable_description()->mutable_output(), "features"), {1, 96, 64});
       m.mutable_soundanalysispreprocessing()->mutable_vggish();
     }},
    {"customModel",
     [](Model& m) {
       text_to_text(m);
       m.mutable_custommodel()->set_classname("Mine");
       (*m.mutable_custommodel()->mutable_parameters())["scale"].set_doublevalue(2);
     }},
    {"linkedModel",
     [](Model& m) {
       text_to_text(m);
       auto& link = *m.mutable_linkedmodel()->mutable_linkedmodelfile();
       link.mutable_linkedmodelfilename()->set_defaultvalue("Other");
       link.mutable_linkedmodelsearchpath()->set_defaultvalue("$BUNDLE_MAIN/:/nowhere");
     }},
    {"serializedModel",
     [](Model& m) {
       text_to_text(m);
       m.mutable_serializedmodel()->set_identifier("com.example.mine");
       m.mutable_serializedmodel()->set_model("a form of its own");
     }},
};

Model model_of(const Kind& kind) {
  Model m;
  m.set_specificationversion(8);
  kind.fill(m);
  return m;
}

class Parts : public testing::TestWithParam<Kind> {};

TEST_P(Parts, KeepTheirSpecification) {
  const std::string specification = model_of(GetParam()).SerializeAsString();
  auto files = compile_bytes(specification);
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  auto data = format::parse_coremldata(files->at("coremldata.bin"));
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->target, "spec");
  EXPECT_EQ(std::vector(data->version, data->version + 3), (std::vector<uint64_t>{1, 0, 0}));
  EXPECT_EQ(data->spec_version, 8u);
  EXPECT_EQ(data->spec.text(), specification);
  EXPECT_EQ(json::parse(files->at("metadata.json").text()).at(0).at("modelType").at("name"),
            std::string("MLModelType_") + GetParam().name);
}

/// A pipeline of the model and of one that returns what the model gives.
TEST_P(Parts, AreModelsOfPipelines) {
  const Model part = model_of(GetParam());
  Model pipeline;
  pipeline.set_specificationversion(8);
  *pipeline.mutable_description()->mutable_input() = part.description().input();
  const auto& given = part.description().output(0);
  auto& result = *pipeline.mutable_description()->add_output();
  result = given;
  result.set_name("result");
  *pipeline.mutable_pipeline()->add_models() = part;
  Model& last = *pipeline.mutable_pipeline()->add_models();
  last.set_specificationversion(8);
  *last.mutable_description()->add_input() = given;
  *last.mutable_description()->add_output() = result;
  last.mutable_identity();
  auto files = compile_bytes(pipeline.SerializeAsString());
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  auto data = format::parse_coremldata(files->at("model0/coremldata.bin"));
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->spec.text(), part.SerializeAsString());
  EXPECT_TRUE(files->contains("model1/coremldata.bin"));

  last.mutable_description()->mutable_input(0)->set_name("nobody");
  files = compile_bytes(pipeline.SerializeAsString());
  ASSERT_FALSE(files.ok());
  EXPECT_NE(files.error().to_string().find("'nobody'"), std::string::npos) << files.error().to_string();
}
INSTANTIATE_TEST_SUITE_P(Kinds, Parts, testing::ValuesIn(kKinds), [](const auto& info) { return info.param.name; });

void expect_refused(const Model& model, const char* why) {
  auto files = compile_bytes(model.SerializeAsString());
  ASSERT_FALSE(files.ok()) << why;
  EXPECT_NE(files.error().to_string().find(why), std::string::npos) << files.error().to_string();
}

TEST(MalformedParts, AreRefused) {
  Model print = model_of(kKinds[4]);
  print.mutable_description()->mutable_output(0)->mutable_type()->mutable_multiarraytype()->set_shape(0, 700);
  expect_refused(print, "expected an output of 768 elements, got one of 700");
  Model custom = model_of(kKinds[7]);
  (*custom.mutable_custommodel()->mutable_parameters())["scale"].Clear();
  expect_refused(custom, "parameter 'scale'");
  custom = model_of(kKinds[7]);
  custom.mutable_description()->clear_output();
  expect_refused(custom, "without outputs");
  Model linked = model_of(kKinds[8]);
  linked.mutable_linkedmodel()->mutable_linkedmodelfile()->clear_linkedmodelfilename();
  expect_refused(linked, "it names no file");
}

proto::NeuralNetworkLayer& layer(proto::NeuralNetwork& n, const char* name, const char* in, const char* out) {
  auto& l = *n.add_layers();
  l.set_name(name);
  l.add_input(in);
  l.add_output(out);
  return l;
}

/// A convolution with float weights 1, 2, ...
void set_convolution(proto::NeuralNetworkLayer& l, uint64_t inputs, uint64_t outputs) {
  auto& p = *l.mutable_convolution();
  p.set_kernelchannels(inputs);
  p.set_outputchannels(outputs);
  p.set_ngroups(1);
  p.add_kernelsize(1);
  p.add_kernelsize(1);
  p.mutable_valid();
  for (uint64_t i = 1; i <= inputs * outputs; ++i) p.mutable_weights()->add_floatvalue(static_cast<float>(i));
}

/// A custom layer between a convolution and others that read what it gives.
Model custom_network(proto::NeuralNetworkMultiArrayShapeMapping mapping) {
  Model m;
  m.set_specificationversion(4);
  set_array(add(*m.mutable_description()->mutable_input(), "x"), {3, 4, 4});
  set_array(add(*m.mutable_description()->mutable_output(), "y"), {2});
  auto& n = *m.mutable_neuralnetwork();
  n.set_arrayinputshapemapping(mapping);
  layer(n, "squeeze", "x", "a").mutable_activation()->mutable_relu();
  auto& custom = *layer(n, "mine", "a", "b").mutable_custom();
  custom.set_classname("Mine");
  custom.add_weights()->add_floatvalue(1);
  set_convolution(layer(n, "conv", "b", "c"), 3, 2);
  auto& pool = *layer(n, "pool", "c", "d").mutable_pooling();
  pool.set_globalpooling(true);
  pool.set_type(proto::PoolingLayerParams::AVERAGE);
  pool.mutable_valid();
  layer(n, "soft", "d", "y").mutable_softmax();
  return m;
}

class CustomLayers : public testing::TestWithParam<proto::NeuralNetworkMultiArrayShapeMapping> {};

TEST_P(CustomLayers, NeedNoClass) {
  const std::string specification = custom_network(GetParam()).SerializeAsString();
  auto files = compile_bytes(specification);
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  auto data = format::parse_coremldata(files->at("coremldata.bin"));
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->spec.text(), specification);
}

TEST_P(CustomLayers, DoNotHideMalformedLayers) {
  Model m = custom_network(GetParam());
  m.mutable_neuralnetwork()->mutable_layers(2)->set_input(0, "nothing");
  expect_refused(m, "'nothing'");
  m = custom_network(GetParam());
  m.mutable_neuralnetwork()->mutable_layers(1)->set_input(0, "nothing");
  expect_refused(m, "'nothing'");
  m = custom_network(GetParam());
  (*m.mutable_neuralnetwork()->mutable_layers(1)->mutable_custom()->mutable_parameters())["k"].Clear();
  expect_refused(m, "parameter 'k'");
  m = custom_network(GetParam());
  m.mutable_description()->mutable_output(0)->set_name("z");
  expect_refused(m, "output 'z'");
}

TEST_P(CustomLayers, MayBeInBranches) {
  Model m = custom_network(GetParam());
  auto& n = *m.mutable_neuralnetwork();
  const proto::NeuralNetworkLayer custom = n.layers(1);
  auto& one = *n.mutable_layers(1);
  one.Clear();
  one.set_name("either");
  one.add_input("a");
  *one.mutable_branch()->mutable_ifbranch()->add_layers() = custom;
  layer(*one.mutable_branch()->mutable_elsebranch(), "copy", "a", "b").mutable_copy();
  auto files = compile_bytes(m.SerializeAsString());
  EXPECT_TRUE(files.ok()) << files.error().to_string();
}
INSTANTIATE_TEST_SUITE_P(Mappings, CustomLayers,
                         testing::Values(proto::RANK5_ARRAY_MAPPING, proto::EXACT_ARRAY_MAPPING));

// The wrong number of weights shows without the sizes of the input, which blobs of rank 5 let the importer reach.
TEST(CustomLayers, DoNotHideWrongWeights) {
  Model m = custom_network(proto::RANK5_ARRAY_MAPPING);
  m.mutable_neuralnetwork()->mutable_layers(2)->mutable_convolution()->mutable_weights()->add_floatvalue(7);
  expect_refused(m, "layer 'conv'");
}

// coremltools names a class in the attributes of this operation.
TEST(CustomOperations, NeedNoClass) {
  using namespace proto::MILSpec;
  Model m;
  m.set_specificationversion(7);
  set_array(add(*m.mutable_description()->mutable_input(), "x"), {2});
  set_array(add(*m.mutable_description()->mutable_output(), "y"), {2});
  for (auto* list : {m.mutable_description()->mutable_input(), m.mutable_description()->mutable_output()})
    list->Mutable(0)->mutable_type()->mutable_multiarraytype()->set_datatype(proto::ArrayFeatureType::FLOAT32);
  ValueType type;
  type.mutable_tensortype()->set_datatype(FLOAT32);
  type.mutable_tensortype()->set_rank(1);
  type.mutable_tensortype()->add_dimensions()->mutable_constant()->set_size(2);
  const auto text = [](const std::string& value) {
    Value v;
    v.mutable_type()->mutable_tensortype()->set_datatype(STRING);
    v.mutable_immediatevalue()->mutable_tensor()->mutable_strings()->add_values(value);
    return v;
  };
  auto& function = (*m.mutable_mlprogram()->mutable_functions())["main"];
  m.mutable_mlprogram()->set_version(1);
  function.set_opset("CoreML6");
  auto& input = *function.add_inputs();
  input.set_name("x");
  *input.mutable_type() = type;
  auto& block = (*function.mutable_block_specializations())["CoreML6"];
  block.add_outputs("y");
  auto& op = *block.add_operations();
  op.set_type("custom_layer");
  (*op.mutable_inputs())["x"].add_arguments()->set_name("x");
  (*op.mutable_attributes())["name"] = text("mine");
  (*op.mutable_attributes())["class_name"] = text("Mine");
  auto& output = *op.add_outputs();
  output.set_name("y");
  *output.mutable_type() = type;

  auto files = compile_bytes(m.SerializeAsString());
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  const std::string mil(files->at("model.mil").text());
  EXPECT_NE(mil.find("custom_layer(x = x)"), std::string::npos) << mil;
  EXPECT_NE(mil.find("class_name = tensor<string, []>(\"Mine\")"), std::string::npos) << mil;
  test::TemporaryFolder folder;
  for (const auto& [name, bytes] : *files) {
    std::filesystem::create_directories((folder / "m.mlmodelc" / name).parent_path());
    std::ofstream(folder / "m.mlmodelc" / name, std::ios::binary) << bytes.text();
  }
  auto compiled = format::open_model((folder / "m.mlmodelc").string());
  ASSERT_TRUE(compiled.ok()) << compiled.error().to_string();
  auto source = decompile(*compiled);
  ASSERT_TRUE(source.ok()) << source.error().to_string();
  Model again;
  ASSERT_TRUE(again.ParseFromString(source->specification));
  const auto& same = again.mlprogram().functions().at("main").block_specializations().at("CoreML6").operations(0);
  EXPECT_EQ(same.type(), "custom_layer");
  EXPECT_EQ(same.SerializeAsString().size(), op.SerializeAsString().size());
}

}  // namespace
}  // namespace moka::compiler
