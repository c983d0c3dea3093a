// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/compiler.h"
#include "compiler/decompile.h"
#include "format/proto/model.pb.h"
#include "temporary_folder.h"

/// Pipelines that end with non-maximum suppression. The expected texts and files are those of compiled detectors in
/// public repositories.
namespace moka::compiler {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

proto::FeatureDescription boxes(const char* name, int64_t rows, int64_t columns) {
  proto::FeatureDescription f;
  f.set_name(name);
  auto& array = *f.mutable_type()->mutable_multiarraytype();
  array.set_datatype(proto::ArrayFeatureType::FLOAT32);
  if (rows > 0) {
    array.add_shape(rows);
    array.add_shape(columns);
    return f;
  }
  array.mutable_shaperange()->add_sizeranges()->set_upperbound(-1);
  auto& range = *array.mutable_shaperange()->add_sizeranges();
  range.set_lowerbound(static_cast<uint64_t>(columns));
  range.set_upperbound(columns);
  return f;
}

/// A network that scales scores and boxes, then the suppression.
proto::Model detector(int specification) {
  proto::Model m;
  m.set_specificationversion(specification);
  proto::Model& network = *m.mutable_pipeline()->add_models();
  proto::Model& last = *m.mutable_pipeline()->add_models();
  for (const char* name : {"net", "suppression"}) m.mutable_pipeline()->add_names(name);
  network.set_specificationversion(4);
  last.set_specificationversion(specification);
  auto& layers = *network.mutable_neuralnetwork();
  layers.set_arrayinputshapemapping(proto::EXACT_ARRAY_MAPPING);
  for (const auto& [in, out, columns] : {std::tuple{"x", "raw_confidence", 80}, {"b", "raw_coordinates", 4}}) {
    *network.mutable_description()->add_input() = *m.mutable_description()->add_input() = boxes(in, 8, columns);
    *network.mutable_description()->add_output() = *last.mutable_description()->add_input() = boxes(out, 8, columns);
    auto& layer = *layers.add_layers();
    layer.set_name(out);
    layer.add_input(in);
    layer.add_output(out);
    layer.mutable_activation()->mutable_linear()->set_alpha(1);
  }
  for (const auto& [name, columns] : {std::pair{"confidence", 80}, {"coordinates", 4}})
    *last.mutable_description()->add_output() = *m.mutable_description()->add_output() = boxes(name, 0, columns);
  auto& p = *last.mutable_nonmaximumsuppression();
  p.mutable_picktop();
  p.set_iouthreshold(0.45);
  p.set_confidencethreshold(0.25);
  p.set_confidenceinputfeaturename("raw_confidence");
  p.set_coordinatesinputfeaturename("raw_coordinates");
  p.set_confidenceoutputfeaturename("confidence");
  p.set_coordinatesoutputfeaturename("coordinates");
  for (int i = 0; i < 80; ++i) p.mutable_int64classlabels()->add_vector(i);
  return m;
}

Files compiled_detector(const proto::Model& model) {
  auto file = format::open_model_bytes(Bytes::from(model.SerializeAsString()), {});
  EXPECT_TRUE(file.ok()) << file.error().to_string();
  auto files = compile(*file, "m");
  EXPECT_TRUE(files.ok()) << files.error().to_string();
  return files.ok() ? *files : Files{};
}

TEST(CompiledDetectors, DescribeTheSmallestShape) {
  const json metadata = json::parse(compiled_detector(detector(6)).at("metadata.json").text()).at(0);
  const json want{{"dataType", "Float32"},
                  {"hasShapeFlexibility", "1"},
                  {"isOptional", "0"},
                  {"shapeFlexibility", "0... \u00d7 80"},
                  {"shapeRange", "[[0, -1], [80, 80]]"},
                  {"formattedType", "MultiArray (Float32 0 \u00d7 80)"},
                  {"type", "MultiArray"},
                  {"shape", "[0, 80]"},
                  {"name", "confidence"},
                  {"shortDescription", ""}};
  EXPECT_EQ(metadata.at("outputSchema").at(0), want);
  EXPECT_EQ(metadata.at("outputSchema").at(1).at("shape"), "[0, 4]");
  const json stages{{{"name", "MLModelType_neuralNetwork"}}, {{"name", "MLModelType_nonMaximumSuppression"}}};
  EXPECT_EQ(metadata.at("modelType").at("name"), "MLModelType_pipeline");
  EXPECT_EQ(metadata.at("modelType").at("structure"), stages);
}

// Classic models have none, because their analytics would be empty.
TEST(CompiledDetectors, HaveAnalyticsOfTheirNetwork) {
  const Files files = compiled_detector(detector(6));
  const auto it = files.find("model0/analytics/coremldata.bin");
  ASSERT_NE(it, files.end());
  for (const char* text : {"NeuralNetworkModelDetails", "containsCustomLayer", "modelDimension", "nnModelNetHash"})
    EXPECT_NE(it->second.text().find(text), std::string_view::npos) << text;
  EXPECT_EQ(it->second.text().find("SpecificationDetails"), std::string_view::npos);
  EXPECT_FALSE(files.contains("model1/analytics/coremldata.bin"));
  EXPECT_FALSE(files.contains("model0/metadata.json"));
}

TEST(CompiledDetectors, HaveNamesFromSpecification9On) {
  EXPECT_FALSE(compiled_detector(detector(6)).contains("modelNames/coremldata.bin"));
  const Files files = compiled_detector(detector(9));
  const std::string names("\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0net\x0b\0\0\0\0\0\0\0suppression", 38);
  ASSERT_TRUE(files.contains("modelNames/coremldata.bin"));
  EXPECT_EQ(files.at("modelNames/coremldata.bin").text(), names);
}

TEST(CompiledDetectors, GiveTheirNamesBack) {
  for (const int specification : {6, 9}) {
    test::TemporaryFolder folder;
    for (const auto& [name, bytes] : compiled_detector(detector(specification))) {
      fs::create_directories((folder / "m.mlmodelc" / name).parent_path());
      std::ofstream(folder / "m.mlmodelc" / name, std::ios::binary) << bytes.text();
    }
    auto file = format::open_model((folder / "m.mlmodelc").string());
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    auto source = decompile(*file);
    ASSERT_TRUE(source.ok()) << source.error().to_string();
    proto::Model again;
    ASSERT_TRUE(again.ParseFromString(source->specification));
    ASSERT_EQ(again.pipeline().models_size(), 2);
    const std::vector<std::string> names(again.pipeline().names().begin(), again.pipeline().names().end());
    EXPECT_EQ(names,
              specification == 9 ? std::vector<std::string>({"net", "suppression"}) : std::vector<std::string>());
  }
}

// 108 bytes, equal in every published compiled detector.
TEST(CompiledPipelines, HaveAnalyticsOfTheirPrograms) {
  using namespace proto::MILSpec;
  proto::Model m = detector(6);
  proto::Model& program = *m.mutable_pipeline()->mutable_models(0);
  program.clear_neuralnetwork();
  program.set_specificationversion(6);
  auto& function = (*program.mutable_mlprogram()->mutable_functions())["main"];
  program.mutable_mlprogram()->set_version(1);
  function.set_opset("CoreML5");
  auto& block = (*function.mutable_block_specializations())["CoreML5"];
  for (const auto& [in, out, columns] : {std::tuple{"x", "raw_confidence", 80}, {"b", "raw_coordinates", 4}}) {
    auto& input = *function.add_inputs();
    input.set_name(in);
    auto& type = *input.mutable_type()->mutable_tensortype();
    type.set_datatype(FLOAT32);
    type.set_rank(2);
    type.add_dimensions()->mutable_constant()->set_size(8);
    type.add_dimensions()->mutable_constant()->set_size(static_cast<uint64_t>(columns));
    auto& op = *block.add_operations();
    op.set_type("relu");
    (*op.mutable_inputs())["x"].add_arguments()->set_name(in);
    *op.add_outputs() = input;
    op.mutable_outputs(0)->set_name(out);
    block.add_outputs(out);
  }
  const Files files = compiled_detector(m);
  std::string expected("\x19\0\0\0\0\0\0\0NeuralNetworkModelDetails\2\0\0\0\0\0\0\0", 41);
  expected += std::string(
      "\x13\0\0\0\0\0\0\0containsCustomLayer\1\0\0\0\0\0\0\0"
      "0",
      36);
  expected += std::string(
      "\x0e\0\0\0\0\0\0\0modelDimension\1\0\0\0\0\0\0\0"
      "0",
      31);
  ASSERT_TRUE(files.contains("model0/analytics/coremldata.bin"));
  EXPECT_EQ(files.at("model0/analytics/coremldata.bin").text(), expected);
}

}  // namespace
}  // namespace moka::compiler
