// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "format/format_util.h"
#include "format/model_file.h"
#include "format/path_guard.h"
#include "format/proto/model.pb.h"
#include "format/source.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;

/// A repository in Hugging Face's cache with one snapshot.
struct Repository {
  test::TemporaryFolder folder;
  fs::path root = folder.path() / "models--owner--name";
  fs::path snapshot = root / "snapshots" / "5f3a";

  void put(const fs::path& name, std::string_view content) {
    const std::string blob = "blob" + std::to_string(count++);
    test::write_file(root / "blobs" / blob, content);
    link(name, root / "blobs" / blob);
  }
  void link(const fs::path& name, const fs::path& target) {
    const fs::path at = snapshot / name;
    fs::create_directories(at.parent_path());
    fs::create_symlink(target.lexically_relative(at.parent_path()), at);
  }
  void put_package() {
    put("x.mlpackage/Manifest.json", test::package_manifest("com.apple.CoreML/model.mlmodel"));
    put("x.mlpackage/Data/com.apple.CoreML/model.mlmodel", test::identity_model());
    put("x.mlpackage/Data/com.apple.CoreML/weights/weight.bin", "weights");
  }
  std::string package() const { return (snapshot / "x.mlpackage").string(); }

  int count = 0;
};

std::string refused_link(const Result<ModelFile>& file) {
  EXPECT_FALSE(file.ok());
  if (file.ok()) return {};
  EXPECT_EQ(file.error().code(), ErrorCode::malformed);
  return file.error().to_string();
}

void expect_weights(const Result<ModelFile>& file) {
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const auto weights = file->weights().file("@model_path/weights/weight.bin");
  ASSERT_TRUE(weights.ok()) << weights.error().to_string();
  EXPECT_EQ(weights->text(), "weights");
}

TEST(Snapshot, PackagesOpenWithTheirWeights) {
  Repository r;
  r.put_package();
  expect_weights(open_model(r.package()));
  fs::create_directory_symlink(r.package(), r.folder.path() / "short.mlpackage");
  expect_weights(open_model((r.folder.path() / "short.mlpackage").string()));
}

TEST(Snapshot, ModelsOpenWithTheirWeights) {
  Repository r;
  r.put("x.mlmodel", test::identity_model());
  r.put("weights/weight.bin", "weights");
  expect_weights(open_model((r.snapshot / "x.mlmodel").string()));
}

TEST(Snapshot, CompiledModelsOpenWithTheirWeights) {
  Repository r;
  r.put("x.mlmodelc/coremldata.bin", test::coremldata_header(502, "generic", 7)
                                         .str(proto::ModelDescription().SerializeAsString())
                                         .u64(502)
                                         .u64(0)
                                         .bytes);
  r.put("x.mlmodelc/model.mil", "program(1.0)");
  r.put("x.mlmodelc/weights/weight.bin", "weights");
  const auto file = open_model((r.snapshot / "x.mlmodelc").string());
  expect_weights(file);
  EXPECT_EQ(file->mil_text().text(), "program(1.0)");
}

TEST(Snapshot, PackagesAreWrittenAsFiles) {
  Repository r;
  r.put_package();
  r.put("x.mlpackage/Data/notes.txt", "notes");
  const auto source = ModelSource::read(r.package());
  ASSERT_TRUE(source.ok()) << source.error().to_string();
  const fs::path copy = r.folder.path() / "copy.mlpackage";
  ASSERT_TRUE(source->write(copy.string()).ok());
  EXPECT_EQ(test::read_file(copy / "Data/com.apple.CoreML/model.mlmodel"), test::identity_model());
  EXPECT_EQ(test::read_file(copy / "Data/com.apple.CoreML/weights/weight.bin"), "weights");
  EXPECT_EQ(test::read_file(copy / "Data/notes.txt"), "notes");
  for (const auto& entry : fs::recursive_directory_iterator(copy)) EXPECT_FALSE(entry.is_symlink()) << entry.path();
}

TEST(Snapshot, LinksToOtherPlacesAreErrors) {
  const fs::path model = "x.mlpackage/Data/com.apple.CoreML/model.mlmodel";
  for (const char* other : {"models--owner--other/blobs/blob", "outside", "models--owner--name/secret",
                            "models--owner--name/blobs/more/blob"}) {
    Repository r;
    r.put_package();
    test::write_file(r.folder.path() / other, test::identity_model());
    fs::remove(r.snapshot / model);
    r.link(model, r.folder.path() / other);
    EXPECT_NE(
        refused_link(open_model(r.package())).find("the symbolic link 'com.apple.CoreML/model.mlmodel' leads outside"),
        std::string::npos)
        << other;
  }
}

TEST(Snapshot, BlobsElsewhereAreErrors) {
  Repository r;
  r.put_package();
  fs::rename(r.root / "blobs", r.folder.path() / "blobs");
  fs::create_directory_symlink("../blobs", r.root / "blobs");
  EXPECT_NE(refused_link(open_model(r.package())).find("leads outside of the model"), std::string::npos);
}

TEST(Snapshot, FoldersOfOtherLinksAreThoseOfTheFile) {
  Repository r;
  r.put("x.onnx", "");
  test::write_file(r.folder.path() / "a/y.onnx", "");
  fs::create_symlink("a/y.onnx", r.folder.path() / "y.onnx");
  const fs::path real = fs::canonical(r.folder.path());
  EXPECT_EQ(*folder_of((r.snapshot / "x.onnx").string()), (real / "models--owner--name/snapshots/5f3a").string());
  EXPECT_EQ(*folder_of((r.folder.path() / "y.onnx").string()), (real / "a").string());
  EXPECT_EQ(folder_of((r.folder.path() / "z.onnx").string()).error().code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace moka::format
