// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodelc/coremldata.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "format/format_util.h"
#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;
using test::coremldata_header;
using test::Stream;

std::string description(const char* input) {
  proto::ModelDescription d;
  d.add_input()->set_name(input);
  return d.SerializeAsString();
}

std::string program(int functions = 1) {
  Stream s = coremldata_header(502, "generic", 7);
  s.str(description("x"));
  for (int i = 0; i < functions; ++i) s.u64(502).u64(0);
  return s.bytes;
}

std::string pipeline(uint64_t models, uint32_t type = 200) {
  Stream s = coremldata_header(type, "generic.model0v1.0.0spec", 8);
  s.str(description("image")).u64(models).u64(type);
  return s.bytes;
}

std::string classic() {
  proto::Model model;
  model.set_specificationversion(1);
  model.mutable_glmclassifier()->add_offset(2.5);
  return coremldata_header(400, "spec", 1).bytes + model.SerializeAsString();
}

TEST(CoreMLData, ClassifierTails) {
  Stream s = coremldata_header(403, "generic", 1);
  s.str(description("data")).u64(403).u64(100).u64(2).str("golf ball").str("tennis ball").str("").u64(1).str("loss");
  auto data = parse_coremldata(Bytes::from(s.bytes));
  ASSERT_TRUE(data.ok()) << data.error().to_string();
  EXPECT_EQ(data->type, 403u);
  EXPECT_EQ(data->version[1], 2u);
  EXPECT_EQ(data->string_labels, (std::vector<std::string>{"golf ball", "tennis ball"}));
  EXPECT_EQ(data->outputs, std::vector<std::string>{"loss"});

  s = coremldata_header(403, "generic", 1);
  s.str(description("data")).u64(403).u64(101).u64(2).u64(7).u64(~0ull).str("p").u64(0);
  data = parse_coremldata(Bytes::from(s.bytes));
  ASSERT_TRUE(data.ok()) << data.error().to_string();
  EXPECT_EQ(data->int64_labels, (std::vector<int64_t>{7, -1}));
  EXPECT_EQ(data->probability_layer, "p");
}

TEST(CoreMLData, ProgramAndPipelineTails) {
  EXPECT_EQ(parse_coremldata(Bytes::from(program(3)))->functions, 3u);
  for (uint32_t type : {200u, 201u, 202u}) EXPECT_EQ(parse_coremldata(Bytes::from(pipeline(4, type)))->stages, 4u);
  EXPECT_EQ(parse_coremldata(Bytes::from(classic()))->spec.size(), classic().size() - 36 - 8 - 28);
}

/// The layout of Xcode 9: 32 bytes between the version and the target.
Stream first_layout(uint32_t type, std::string_view target) {
  Stream s;
  s.u32(type).u64(1).u64(0).u64(0);
  s.bytes.append(32, '\0');
  s.str(target);
  return s;
}

TEST(CoreMLData, TheLayoutOfXcode9) {
  Stream s = first_layout(200, "generic.model0v1.0.0spec");
  s.str(description("image")).u64(1).u64(200);
  auto data = parse_coremldata(Bytes::from(s.bytes));
  ASSERT_TRUE(data.ok()) << data.error().to_string();
  EXPECT_EQ(data->stages, 1u);
  EXPECT_EQ(data->target, "generic.model0v1.0.0spec");
  for (size_t n = 0; n < s.bytes.size(); ++n)
    EXPECT_FALSE(parse_coremldata(Bytes::from(s.bytes.substr(0, n))).ok()) << n;

  proto::Model model;
  model.mutable_glmclassifier()->add_offset(2.5);
  const std::string message = model.SerializeAsString();
  Stream plain = first_layout(400, "spec"), sized = plain;
  plain.bytes += message;
  sized.str(message);
  for (const Stream& classic : {plain, sized}) {
    data = parse_coremldata(Bytes::from(classic.bytes));
    ASSERT_TRUE(data.ok()) << data.error().to_string();
    EXPECT_EQ(data->spec.text(), message);
  }
}

TEST(CoreMLData, EveryTruncationIsAnError) {
  for (const std::string& whole : {program(), pipeline(2)})
    for (size_t n = 0; n < whole.size(); ++n) {
      auto data = parse_coremldata(Bytes::from(whole.substr(0, n)));
      ASSERT_FALSE(data.ok()) << n;
      EXPECT_EQ(data.error().code(), ErrorCode::malformed);
    }
  EXPECT_FALSE(parse_coremldata(Bytes::from(program() + "x")).ok());
  EXPECT_FALSE(parse_coremldata(Bytes::from(pipeline(1) + "12345678")).ok());
}

TEST(CoreMLData, HugeCountsAreErrors) {
  for (uint64_t n : {~uint64_t{0}, uint64_t{1} << 61, uint64_t{1} << 32, uint64_t{9}}) {
    Stream s = coremldata_header(403, "generic", 1);
    s.str("").u64(403).u64(100).u64(n).str("a");
    EXPECT_FALSE(parse_coremldata(Bytes::from(s.bytes)).ok());
    s = coremldata_header(500, "generic", 1);
    s.str("").u64(500).u64(n).str("a");
    EXPECT_FALSE(parse_coremldata(Bytes::from(s.bytes)).ok());
    s = coremldata_header(500, "generic", 1);
    s.u64(n);
    EXPECT_FALSE(parse_coremldata(Bytes::from(s.bytes)).ok());
  }
}

struct Folder {
  test::TemporaryFolder folder;
  fs::path root = folder.path() / "x.mlmodelc";

  void put(const std::string& path, std::string_view content) { test::write_file(root / path, content); }
  Result<ModelFile> open() const { return open_model(root); }
};

TEST(Compiled, PipelineOfProgramsAndClassicModels) {
  Folder f;
  f.put("coremldata.bin", pipeline(3));
  f.put("model0/coremldata.bin", program());
  f.put("model0/model.mil", "program(1.0) first");
  f.put("weights/weight.bin", test::read_file(fs::path(MOKA_TEST_DATA) / "blobs.bin"));
  f.put("model1/coremldata.bin", classic());
  f.put("model2/coremldata.bin", pipeline(1, 202));
  f.put("model2/model0/coremldata.bin", program(2));
  f.put("model2/model0/model.mil", "program(1.0) third");
  auto file = f.open();
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_TRUE(file->spec().has_pipelineclassifier());
  EXPECT_EQ(file->spec().specificationversion(), 8);
  auto stages = file->stages(file->spec());
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].file.mil_text().text(), "program(1.0) first");
  EXPECT_EQ(stages[0].model->description().input(0).name(), "x");
  EXPECT_TRUE(stages[0].file.weights().blob("@model_path/../weights/weight.bin", 64).ok());
  EXPECT_EQ(stages[0].file.weights().file("@model_path/../../x").error().code(), ErrorCode::malformed);
  EXPECT_EQ(stages[1].model->glmclassifier().offset(0), 2.5);
  auto inner = stages[2].file.stages(*stages[2].model);
  ASSERT_EQ(inner.size(), 1u);
  EXPECT_EQ(inner[0].file.mil_text().text(), "program(1.0) third");
}

TEST(Compiled, MissingPartsAreErrors) {
  Folder f;
  f.put("coremldata.bin", pipeline(~0ull));
  f.put("model0/coremldata.bin", classic());
  auto file = f.open();
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::not_found);
  EXPECT_NE(file.error().to_string().find("'model1'"), std::string::npos) << file.error().to_string();

  Folder g;
  g.put("coremldata.bin", program());
  file = g.open();
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().to_string().find("model.mil"), std::string::npos) << file.error().to_string();
}

TEST(Compiled, PipelinesThatContainThemselvesAreErrors) {
  Folder f;
  f.put("coremldata.bin", pipeline(2));
  fs::create_directory_symlink(".", f.root / "model0");
  fs::create_directory_symlink(".", f.root / "model1");
  auto file = f.open();
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::malformed);
}

TEST(Compiled, LinksOutOfTheFolderAreErrors) {
  Folder f;
  f.put("coremldata.bin", program());
  test::write_file(f.folder.path() / "secret", "program(1.0)");
  fs::create_symlink(f.folder.path() / "secret", f.root / "model.mil");
  auto file = f.open();
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::malformed);
  EXPECT_NE(file.error().to_string().find("model.mil"), std::string::npos);
}

TEST(Compiled, NeuralNetworksNameTheFileThatIsMissing) {
  Folder f;
  Stream s = coremldata_header(500, "generic", 1);
  s.str(description("x")).u64(500).u64(1).str("y");
  f.put("coremldata.bin", s.bytes);
  auto file = f.open();
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::not_found);
  EXPECT_NE(file.error().to_string().find("model.espresso.net"), std::string::npos) << file.error().to_string();
}

TEST(Compiled, TypeMustMatchTheSpecification) {
  Folder f;
  proto::Model model;
  model.mutable_identity();
  f.put("coremldata.bin", coremldata_header(400, "spec", 1).bytes + model.SerializeAsString());
  auto file = f.open();
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::malformed);
}

}  // namespace
}  // namespace moka::format
