// SPDX-License-Identifier: Apache-2.0
#include "base/output.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace moka {
namespace {

namespace fs = std::filesystem;

class OutputRule : public ::testing::Test {
 protected:
  std::string put(const std::string& name, std::string_view content) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  test::TemporaryFolder folder_;
};

using namespace std::string_view_literals;

TEST_F(OutputRule, KnowsEachKindByItsContent) {
  const std::pair<OutputKind, std::string_view> files[] = {
      // Model: specificationVersion 1, description, identity (field 900).
      {OutputKind::specification, "\x08\x01\x12\x00\xa2\x38\x00"sv},
      // ModelProto: ir_version 8, graph, opset_import.
      {OutputKind::onnx, "\x08\x08\x3a\x00\x42\x02\x10\x11"sv},
      {OutputKind::encrypted_model, "age-encryption.org/v1\n-> X25519"},
      {OutputKind::identity, "# public key: age1\nAGE-SECRET-KEY-1QQ"},
      {OutputKind::page, "<!doctype html>\n<meta name=\"generator\" content=\"Moka\">"},
      {OutputKind::report, "{\n  \"format\": \"moka-report\","},
      {OutputKind::rates, "{\n \"format\": \"moka unit rates\","},
      {OutputKind::kernel_times, "{\"format\": \"moka kernel times\","},
      {OutputKind::array, "\x93NUMPY\x01\x00"sv},
      {OutputKind::picture, "\x89PNG\r\n\x1a\n"sv},
      {OutputKind::table, "row,a\r\n1,2\r\n"},
      {OutputKind::source, "// Generated from the model; edits are lost.\n"},
      {OutputKind::property_list, "<?xml version=\"1.0\"?>\n<plist version=\"1.0\">\n<dict/>\n</plist>\n"},
      {OutputKind::packed_weights, "\nMOKPACK\x01"},
      {OutputKind::digests, "moka content 1\n"},
      {OutputKind::pipelines, "\x20\0\0\0\1\0\0\0"sv},
      // A time, a sequence, its flags and the mark of the first packet.
      {OutputKind::trace, "\x0a\x09\x40\x05\x50\x07\x68\x01\xb8\x05\x01"sv},
  };
  for (const auto& [kind, content] : files) {
    const std::string path = put("file", content);
    EXPECT_TRUE(holds(path, kind)) << describe(kind);
    EXPECT_EQ(described_content(path), describe(kind));
    for (const auto& [other, ignored] : files)
      EXPECT_EQ(holds(path, other), other == kind) << describe(kind) << " as " << describe(other);
  }
  for (const std::string_view content :
       {"text"sv, "\x08\x01\x12\x00"sv, "\x08\x01\x12\x05\xa2\x38\x00"sv, "{\"format\": 1}"sv})
    for (const auto& [kind, ignored] : files) EXPECT_FALSE(holds(put("file", content), kind)) << describe(kind);
  put("a.mlpackage/Manifest.json", "{\"itemInfoEntries\": {}}");
  put("a.mlmodelc/coremldata.bin", "");
  EXPECT_TRUE(holds(at("a.mlpackage"), OutputKind::package) && holds(at("a.mlmodelc"), OutputKind::compiled_model));
  EXPECT_FALSE(holds(at("a.mlpackage"), OutputKind::compiled_model) || holds(at("a.mlmodelc"), OutputKind::package));
  put("m.onnx", "\x08\x08\x3a\x0bm.onnx.data\x42\x02\x10\x11"sv);
  EXPECT_TRUE(holds(put("m.onnx.data", "weights"), OutputKind::onnx_data));
  EXPECT_FALSE(holds(put("n.onnx.data", "weights"), OutputKind::onnx_data));
}

TEST_F(OutputRule, RefusesInputsModelsAndFolders) {
  const std::string picture = put("in/x.png", "\x89PNG\r\n\x1a\n"sv);
  EXPECT_FALSE(refusal(picture, OutputKind::picture));
  fs::create_symlink(picture, at("link"));
  fs::create_hard_link(picture, at("hard"));
  for (const char* name : {"in/x.png", "in/../in/x.png", "link", "hard"}) {
    const auto refused = refusal(at(name), OutputKind::picture, {picture});
    ASSERT_TRUE(refused && refused->can_force) << name;
    EXPECT_NE(refused->reason.find("is the input"), std::string::npos);
  }
  const auto kind = refusal(picture, OutputKind::page, {picture});
  EXPECT_TRUE(kind && !kind->can_force);
  put("a.mlpackage/Manifest.json", "{\"itemInfoEntries\": {}}");
  const auto model = refusal(at("a.mlpackage"), OutputKind::folder, {at("a.mlpackage")});
  EXPECT_TRUE(model && !model->can_force);
  EXPECT_FALSE(refusal(at("a.mlpackage"), OutputKind::package));
  for (const char* name : {"a.mlpackage/x.png", "a.mlpackage/new/x.png"})
    EXPECT_TRUE(refusal(at(name), OutputKind::picture));
  const auto inside = refusal(at("a.mlpackage"), OutputKind::package, {put("a.mlpackage/b.mlmodel", "x")});
  ASSERT_TRUE(inside && inside->can_force);
  EXPECT_NE(inside->reason.find("contains the input"), std::string::npos);
  const auto other = refusal(at("in"), OutputKind::package);
  ASSERT_TRUE(other && !other->can_force);
  EXPECT_FALSE(check_output(at("in"), OutputKind::package, true).ok());
  EXPECT_FALSE(refusal(at("in"), OutputKind::folder) || refusal(at("new"), OutputKind::package));
  EXPECT_TRUE(refusal(at("in"), OutputKind::picture) && refusal(picture, OutputKind::folder));
  for (const char* device : {"/dev/null", "/dev/stdout", "/proc/self/fd/1"})
    EXPECT_FALSE(refusal(device, OutputKind::picture));
}

}  // namespace
}  // namespace moka
