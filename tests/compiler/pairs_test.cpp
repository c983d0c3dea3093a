// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "compiler/class_name.h"
#include "compiler/compiler.h"
#include "compiler/text_form.h"
#include "format/mlmodelc/coremldata.h"
#include "format/proto/model.pb.h"
#include "ir/text_printer.h"
#include "ir/text_reader.h"
#include "models_folder.h"

/// Compares compiled models with the output of Apple's compiler for the same model.
namespace moka::compiler {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> out;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with("[buildInfo = ")) out.push_back(line);
  return out;
}

struct Pair {
  fs::path apple;
  Files ours;
};

Pair compile_pair(const fs::path& models, const std::string& name, const std::string& extension) {
  auto file = format::open_model((models / (name + extension)).string());
  EXPECT_TRUE(file.ok());
  auto files = compile(*file, model_name(name + extension));
  EXPECT_TRUE(files.ok()) << files.error().to_string();
  return {models / (name + ".mlmodelc"), files.ok() ? *files : Files{}};
}

/// Equal as messages, and equal in bytes except for the order of the description's map, which is arbitrary in Apple's
/// compiler.
void expect_same_data(const Bytes& ours, const std::string& apple) {
  auto a = format::parse_coremldata(Bytes::from(apple)), b = format::parse_coremldata(ours);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->type, b->type);
  EXPECT_EQ(std::vector(a->version, a->version + 3), std::vector(b->version, b->version + 3));
  EXPECT_EQ(a->target, b->target);
  EXPECT_EQ(a->spec_version, b->spec_version);
  EXPECT_EQ(a->functions, b->functions);
  EXPECT_EQ(a->outputs, b->outputs);
  EXPECT_EQ(apple.size(), ours.size());
  proto::ModelDescription x, y;
  ASSERT_TRUE(x.ParseFromString(std::string(a->description.text())));
  ASSERT_TRUE(y.ParseFromString(std::string(b->description.text())));
  const std::map<std::string, std::string> mx(x.metadata().userdefined().begin(), x.metadata().userdefined().end());
  const std::map<std::string, std::string> my(y.metadata().userdefined().begin(), y.metadata().userdefined().end());
  EXPECT_EQ(mx, my);
  x.mutable_metadata()->clear_userdefined();
  y.mutable_metadata()->clear_userdefined();
  EXPECT_EQ(x.SerializeAsString(), y.SerializeAsString());
}

class Programs : public testing::TestWithParam<const char*> {};

TEST_P(Programs, AreWhatApplesCompilerWrites) {
  MOKA_NEEDS_MODELS(models);
  Pair pair = compile_pair(*models, GetParam(), ".mlpackage");
  EXPECT_EQ(lines(pair.ours.at("model.mil").text()), lines(read_text(pair.apple / "model.mil")));
  EXPECT_EQ(pair.ours.at("weights/weight.bin").text(), read_text(pair.apple / "weights/weight.bin"));
  EXPECT_EQ(pair.ours.at("analytics/coremldata.bin").text(), read_text(pair.apple / "analytics/coremldata.bin"));
  EXPECT_EQ(json::parse(pair.ours.at("metadata.json").text()), json::parse(read_text(pair.apple / "metadata.json")));
  expect_same_data(pair.ours.at("coremldata.bin"), read_text(pair.apple / "coremldata.bin"));
}
INSTANTIATE_TEST_SUITE_P(Pairs, Programs,
                         testing::Values("silero_vad/silero-vad-unified-v6.0.0", "silero_vad/unified_int8",
                                         "silero_vad/unified_palette_4bit"));

TEST(Compiler, TheSameModelGivesTheSameBytes) {
  MOKA_NEEDS_MODELS(models);
  for (const char* name : {"silero_vad/silero-vad-encoder-v6.0.0.mlpackage", "glm_sleep/SleepCalculator.mlmodel"}) {
    auto file = format::open_model((*models / name).string());
    ASSERT_TRUE(file.ok());
    auto once = compile(*file, "m"), twice = compile(*file, "m");
    ASSERT_TRUE(once.ok() && twice.ok());
    ASSERT_EQ(once->size(), twice->size());
    for (const auto& [file_name, bytes] : *once) EXPECT_EQ(bytes.text(), twice->at(file_name).text()) << file_name;
  }
}

// The text that Apple's compiler gives TransposeEncoder.mlmodelc, of the models folder's compiled_weightless.
TEST(Compiler, FlexibleInputsAreNamedInTheText) {
  MOKA_NEEDS_MODELS(models);
  auto file = format::open_model((*models / "silero_vad/silero-vad-encoder-v6.0.0.mlpackage").string());
  ASSERT_TRUE(file.ok());
  auto files = compile(*file, "encoder");
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  EXPECT_NE(
      files->at("model.mil")
          .text()
          .find("[FlexibleShapeInformation = tuple<tuple<tensor<string, []>, dict<tensor<string, []>, tensor<int32, "
                "[?]>>>, tuple<tensor<string, []>, dict<tensor<string, []>, list<tensor<int32, [2]>, ?>>>>"
                "(((\"DefaultShapes\", {{\"stft_features\", [1, 129, 1]}}), "
                "(\"RangeDims\", {{\"stft_features\", [[1, 1], [129, 129], [1, 1024]]}})))]"),
      std::string::npos)
      << files->at("model.mil").text().substr(0, 900);
}

// The form of the text is that of a published compiled model; the rule of its labels is not known.
TEST(Compiler, EnumeratedShapesAreInTheText) {
  const char* source = R"(program(1.3)
{
    func main<ios17>(tensor<fp32, [?]> input) {
            tensor<fp32, [?]> output = relu(x = input);
        } -> (output);
})";
  auto program = ir::read_text(source, ops::table());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  import::ModelDescription description;
  description.specification_version = 9;
  description.default_function = "main";
  description.functions.emplace_back().name = "main";
  auto& input = description.functions[0].inputs.emplace_back();
  input.name = "input";
  input.array.shape = {4};
  input.array.enumerated = {{1}, {2}, {4}};
  prepare_text(*program, description);
  const std::string text = ir::print_text(*program, true);
  const std::string begin =
      "[FlexibleShapeInformation = tuple<tuple<string, dict<string, tensor<int32, [?]>>>, tuple<string, dict<string, "
      "dict<string, tensor<int32, [?]>>>>>(((\"DefaultShapes\", {{\"input\", [4]}}), (\"EnumeratedShapes\", {";
  const size_t at = text.find(begin);
  ASSERT_NE(at, std::string::npos) << text;
  const std::string shapes = text.substr(at + begin.size(), text.find(")))]", at) - at - begin.size());
  std::vector<std::string> labels;
  std::set<std::string> sizes;
  const char* rest = shapes.c_str();
  char label[9], size[2];
  for (int length = 0;
       std::sscanf(rest, R"({"%8[0-9a-f]", {{"input", [%1[124]]}}}%n)", label, size, &length) == 2 && length > 0;
       length = 0) {
    EXPECT_EQ(std::strlen(label), 8u);
    labels.push_back(label);
    sizes.insert(size);
    rest += length;
    if (std::strncmp(rest, ", ", 2) == 0) rest += 2;
  }
  EXPECT_STREQ(rest, "}") << shapes;
  EXPECT_TRUE(std::is_sorted(labels.begin(), labels.end())) << shapes;
  EXPECT_EQ(sizes, (std::set<std::string>{"1", "2", "4"})) << shapes;
  EXPECT_TRUE(ir::read_text(text, ops::table()).ok());
  // A second flexible input would need combinations of shapes, of which no file is public.
  program->functions[0]->attributes.clear();
  description.functions[0].inputs.push_back(input);
  prepare_text(*program, description);
  EXPECT_EQ(ir::print_text(*program, true).find("Flexible"), std::string::npos);
}

TEST(Compiler, PipelinesHaveTheirModelsInFolders) {
  MOKA_NEEDS_MODELS(models);
  auto file = format::open_model((*models / "sentiment_glm/SentimentPolarity.mlmodel").string());
  ASSERT_TRUE(file.ok());
  auto files = compile(*file, "SentimentPolarity");
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  auto data = format::parse_coremldata(files->at("coremldata.bin"));
  ASSERT_TRUE(data.ok()) << data.error().to_string();
  EXPECT_EQ(data->stages, 2u);
  EXPECT_EQ(data->target, "generic.model0v1.0.1generic.model0v1.0.0spec.model1v1.0.0spec.model1v1.0.0spec");
  EXPECT_EQ(std::vector(data->version, data->version + 3), (std::vector<uint64_t>{1, 0, 1}));
  for (const char* name : {"model0/model0/coremldata.bin", "model0/model1/coremldata.bin", "model1/coremldata.bin"})
    EXPECT_TRUE(files->contains(name)) << name;
  auto child = format::parse_coremldata(files->at("model1/coremldata.bin"));
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->type, 400u);
  EXPECT_EQ(child->target, "spec");
  const json metadata = json::parse(files->at("metadata.json").text()).at(0);
  EXPECT_EQ(metadata.at("modelType").at("name"), "MLModelType_pipelineClassifier");
  EXPECT_EQ(metadata.at("modelType").at("structure").at(1).at("name"), "MLModelType_glmClassifier");
  EXPECT_EQ(metadata.at("classLabels").size(), 2u);
}

TEST(ClassName, KeepsLettersAndDigits) {
  EXPECT_EQ(class_name("silero-vad-unified-v6.0.0"), "silero_vad_unified_v6_0_0");
  EXPECT_EQ(class_name("3D net"), "_3D_net");
  EXPECT_EQ(class_name(""), "_");
  EXPECT_EQ(class_name("caf\u00e9"), "caf\u00e9");
  EXPECT_EQ(class_name("\u65e5\u672c \u03a9\u00b2"), "\u65e5\u672c_\u03a9\u00b2");
  EXPECT_EQ(class_name("\U0001f600!"), "__");
  EXPECT_EQ(class_name("a\u200b\u202eb\u2028c"), "a__b_c") << "invisible";
  EXPECT_EQ(class_name("x\u0301"), "x\u0301");
  EXPECT_EQ(class_name("\u0301x"), "_\u0301x");
  EXPECT_EQ(class_name("_1"), "_1");
  EXPECT_EQ(class_name("\xff\xe3\x81"), "___") << "not UTF-8";
  EXPECT_EQ(model_name("a.b/Net.v2.mlpackage/"), "Net.v2");
  EXPECT_EQ(model_name("Net"), "Net");
}

}  // namespace
}  // namespace moka::compiler
