// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "format/format_util.h"
#include "format/mlpackage/manifest.h"
#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;
using test::identity_model;
using test::package_manifest;

struct Package {
  test::TemporaryFolder folder;
  fs::path root = folder.path() / "x.mlpackage";

  explicit Package(const std::string& json) {
    test::write_file(root / "Manifest.json", json);
    test::write_file(root / "Data/com.apple.CoreML/model.mlmodel", identity_model());
    test::write_file(folder.path() / "outside.mlmodel", identity_model());
  }
  Result<ModelFile> open() const { return open_model(root.string() + "//"); }
};

TEST(Package, ClassicModel) {
  Package package(package_manifest("com.apple.CoreML/model.mlmodel"));
  auto file = package.open();
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_TRUE(file->spec().has_identity());
  EXPECT_EQ(file->path(), package.root.string());
  ASSERT_EQ(file->package_items().size(), 1u);
  EXPECT_EQ(file->package_items()[0].author, "a");
}

TEST(Package, PathsThatLeaveAreErrors) {
  for (const char* path :
       {"../../outside.mlmodel", "/etc/hostname", "com.apple.CoreML/../../../outside.mlmodel", "..", "", "a\\u0000b"}) {
    auto file = Package(package_manifest(path)).open();
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.error().code(), ErrorCode::malformed) << file.error().to_string();
    if (path[0] && !std::string_view(path).starts_with("a")) {
      EXPECT_NE(file.error().to_string().find(path), std::string::npos) << file.error().to_string();
    }
  }
}

TEST(Package, SymbolicLinksThatLeaveAreErrors) {
  Package package(package_manifest("com.apple.CoreML/link.mlmodel"));
  fs::create_symlink(package.folder.path() / "outside.mlmodel", package.root / "Data/com.apple.CoreML/link.mlmodel");
  auto file = package.open();
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::malformed);
  EXPECT_NE(file.error().to_string().find("link.mlmodel"), std::string::npos);
}

TEST(Package, OtherItemsMayNotLeaveEither) {
  Package package(package_manifest("com.apple.CoreML/model.mlmodel", R"(, "B": {"path": "weights"})"));
  EXPECT_TRUE(package.open().ok());
  fs::create_directory_symlink(package.folder.path(), package.root / "Data/weights");
  auto file = package.open();
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().to_string().find("'weights'"), std::string::npos) << file.error().to_string();
}

TEST(Package, BadManifestsAreErrors) {
  const char* bad[] = {
      "",
      "{",
      "[]",
      "{}",
      R"({"fileFormatVersion": 1, "rootModelIdentifier": "A", "itemInfoEntries": {}})",
      R"({"fileFormatVersion": "1.0.0", "rootModelIdentifier": "A", "itemInfoEntries": {}})",
      R"({"fileFormatVersion": "1.0.0", "rootModelIdentifier": "A", "itemInfoEntries": []})",
      R"({"fileFormatVersion": "1.0.0", "rootModelIdentifier": "A", "itemInfoEntries": {"A": 1}})",
      R"({"fileFormatVersion": "1.0.0", "rootModelIdentifier": "A", "itemInfoEntries": {"A": {}}})",
      R"({"fileFormatVersion": "1.0.0", "rootModelIdentifier": "A", "itemInfoEntries": {"A": {"path": 1}}})",
  };
  for (const char* json : bad) {
    auto m = parse_manifest(Bytes::from(json));
    ASSERT_FALSE(m.ok()) << json;
    EXPECT_EQ(m.error().code(), ErrorCode::malformed);
  }
  EXPECT_FALSE(parse_manifest(Bytes::from(std::string(100000, '['))).ok());
  EXPECT_FALSE(parse_manifest(Bytes::from(R"({"a":)" + std::string(100000, '['))).ok());
  auto later = package_manifest("m");
  later.replace(later.find("1.0.0"), 5, "2.0.0");
  EXPECT_EQ(parse_manifest(Bytes::from(later)).error().code(), ErrorCode::unsupported);
}

TEST(Package, ManifestsThatAreNotObjectsSayWhere) {
  const std::pair<std::string, const char*> cases[] = {
      {R"({"fileFormatVersion": "1.0)", "expected a JSON object, got an error at byte 27 of 26"},
      {R"({"a": 1e999})", "expected a JSON object"},
      {"[1]", "expected a JSON object, got a list"},
      {"[1", "expected a JSON object"},
      {"", "expected a JSON object, got an empty file"},
  };
  for (const auto& [json, message] : cases) {
    auto m = parse_manifest(Bytes::from(json));
    ASSERT_FALSE(m.ok()) << json;
    EXPECT_NE(m.error().to_string().find(message), std::string::npos) << m.error().to_string();
  }
}

TEST(Package, MissingThingsAreNamed) {
  auto file = Package(package_manifest("com.apple.CoreML/none.mlmodel")).open();
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::not_found);
  EXPECT_NE(file.error().to_string().find("none.mlmodel"), std::string::npos);
  EXPECT_EQ(open_model("/nonexistent/model.mlmodel").error().code(), ErrorCode::not_found);
  test::TemporaryFolder empty;
  EXPECT_EQ(open_model(empty.path()).error().code(), ErrorCode::malformed);
}

}  // namespace
}  // namespace moka::format
