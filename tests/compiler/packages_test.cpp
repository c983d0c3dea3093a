// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "compiler/compiler.h"
#include "format/proto/model.pb.h"
#include "temporary_folder.h"

/// Packages keep texts beside their specification. Apple's result for the package of a published text classifier has
/// them in its specification, with "--" for missing ones, and the hash and the name of the specification's file.
namespace moka::compiler {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

json item(const char* description, const char* name) {
  return {{"author", "com.apple.CoreML"},
          {"description", description},
          {"name", name},
          {"path", std::string("com.apple.CoreML/") + name}};
}

proto::Model text_classifier() {
  proto::Model m;
  m.set_specificationversion(3);
  auto& input = *m.mutable_description()->add_input();
  input.set_name("text");
  input.mutable_type()->mutable_stringtype();
  auto& output = *m.mutable_description()->add_output();
  output.set_name("label");
  output.mutable_type()->mutable_stringtype();
  m.mutable_description()->mutable_metadata()->set_shortdescription("about");
  m.mutable_textclassifier()->set_revision(1);
  for (const char* label : {"spam", "legitimate"})
    m.mutable_textclassifier()->mutable_stringclasslabels()->add_vector(label);
  return m;
}

class Packages : public testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_ / "Spam.mlpackage";
    const json manifest{{"fileFormatVersion", "1.0.0"},
                        {"rootModelIdentifier", "1"},
                        {"itemInfoEntries",
                         {{"1", item("CoreML Model Specification", "Classifier.mlmodel")},
                          {"2", item("External Metadata Overlay", "Metadata.json")},
                          {"3", item("External FeatureDescription Overlay", "FeatureDescriptions.json")}}}};
    const fs::path data = path_ / "Data" / "com.apple.CoreML";
    write(path_ / "Manifest.json", manifest.dump());
    write(data / "Classifier.mlmodel", text_classifier().SerializeAsString());
    write(data / "Metadata.json",
          json{{"MLModelAuthorKey", "--"}, {"MLModelLicenseKey", "--"}, {"MLModelVersionStringKey", "2"}}.dump());
    write(data / "FeatureDescriptions.json",
          json{{"Inputs", {{"text", {{"MLFeatureShortDescription", "Input text"}}}}}, {"Outputs", json::object()}}
              .dump());
  }
  Result<Files> compiled(bool verbatim) {
    format::OpenOptions options;
    options.verbatim_texts = verbatim;
    auto file = format::open_model(path_.string(), options);
    if (!file.ok()) return std::move(file).error();
    return compile(*file, "Spam");
  }
  test::TemporaryFolder folder_;
  fs::path path_;
};

TEST_F(Packages, TextsGoIntoTheSpecification) {
  auto files = compiled(true);
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  proto::Model m = text_classifier();
  m.mutable_description()->mutable_input(0)->set_shortdescription("Input text");
  auto& texts = *m.mutable_description()->mutable_metadata();
  texts.set_versionstring("2");
  texts.set_author("--");
  texts.set_license("--");
  const std::string header("\xd0\x07\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0spec\3\0\0\0",
                           44);
  EXPECT_EQ(files->at("coremldata.bin").text(), header + std::string(28, '\0') + m.SerializeAsString());
  const json metadata = json::parse(files->at("metadata.json").text()).at(0);
  EXPECT_EQ(metadata.at("author"), "--");
  EXPECT_EQ(metadata.at("license"), "--");
  EXPECT_EQ(metadata.at("version"), "2");
  EXPECT_EQ(metadata.at("shortDescription"), "about");
  EXPECT_EQ(metadata.at("classLabels"), (json{"spam", "legitimate"}));
  EXPECT_EQ(metadata.at("stateSchema"), json::array());
  EXPECT_EQ(metadata.at("modelType"), (json{{"name", "MLModelType_textClassifier"}}));
}

TEST_F(Packages, AnalyticsNameTheSpecificationsFile) {
  auto files = compiled(true);
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  const std::string analytics(files->at("analytics/coremldata.bin").text());
  const Bytes specification = Bytes::from(text_classifier().SerializeAsString());
  EXPECT_NE(analytics.find(base64(sha256(specification.span))), std::string::npos);
  EXPECT_TRUE(analytics.ends_with(std::string("modelName\x0a\0\0\0\0\0\0\0Classifier", 27))) << analytics;
}

TEST_F(Packages, ReadersSeeNoPlaceholders) {
  auto files = compiled(false);
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  const json metadata = json::parse(files->at("metadata.json").text()).at(0);
  EXPECT_FALSE(metadata.contains("author"));
  EXPECT_EQ(metadata.at("version"), "2");
}

}  // namespace
}  // namespace moka::compiler
