// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "format/model_file.h"
#include "format/proto/mil.pb.h"
#include "format/proto/model.pb.h"
#include "import/importer.h"
#include "ir/tensor.h"
#include "temporary_folder.h"

/// Weights files of more than 2 GiB (github.com/apple/coremltools/issues/1807); the file of this test has holes.
namespace moka::import {
namespace {

namespace fs = std::filesystem;
namespace mil = proto::MILSpec;

constexpr uint64_t kFarAway = (uint64_t{5} << 30) + 64;
constexpr const char* kManifest = R"({"fileFormatVersion": "1.0.0", "rootModelIdentifier": "m", "itemInfoEntries": {
  "m": {"author": "com.apple.CoreML", "description": "", "name": "model.mlmodel", "path": "com.apple.CoreML/model.mlmodel"},
  "w": {"author": "com.apple.CoreML", "description": "", "name": "weights", "path": "com.apple.CoreML/weights"}}})";

struct Package {
  test::TemporaryFolder folder;
  const fs::path path = folder / "m.mlpackage";

  void write(uint64_t offset) {
    const fs::path data = path / "Data/com.apple.CoreML";
    fs::create_directories(data / "weights");
    std::ofstream(path / "Manifest.json") << kManifest;
    std::ofstream(data / "model.mlmodel", std::ios::binary) << specification(offset);
    std::ofstream weights(data / "weights/weight.bin", std::ios::binary);
    const uint32_t header[16] = {1, 2};
    weights.write(reinterpret_cast<const char*>(header), sizeof header);
    // A record: mark, type (float32), bytes, where they are.
    struct {
      uint32_t mark = 0xDEADBEEF, type = 2;
      uint64_t size = 8, begin, rest[5] = {};
    } record;
    record.begin = offset + 64;
    weights.seekp(static_cast<std::streamoff>(offset));
    weights.write(reinterpret_cast<const char*>(&record), sizeof record);
    const float values[2] = {1.5f, -2.25f};
    weights.write(reinterpret_cast<const char*>(values), sizeof values);
  }

 private:
  static void set_type(mil::ValueType& type) {
    auto& t = *type.mutable_tensortype();
    t.set_datatype(mil::FLOAT32);
    t.set_rank(1);
    t.add_dimensions()->mutable_constant()->set_size(2);
  }

  static std::string specification(uint64_t offset) {
    proto::Model model;
    model.set_specificationversion(6);
    auto& y = *model.mutable_description()->add_output();
    y.set_name("y");
    y.mutable_type()->mutable_multiarraytype()->add_shape(2);
    y.mutable_type()->mutable_multiarraytype()->set_datatype(proto::ArrayFeatureType::FLOAT32);
    auto& function = (*model.mutable_mlprogram()->mutable_functions())["main"];
    function.set_opset("CoreML5");
    auto& block = (*function.mutable_block_specializations())["CoreML5"];
    auto& op = *block.add_operations();
    op.set_type("const");
    auto& output = *op.add_outputs();
    output.set_name("y");
    set_type(*output.mutable_type());
    auto& value = (*op.mutable_attributes())["val"];
    set_type(*value.mutable_type());
    value.mutable_blobfilevalue()->set_filename("@model_path/weights/weight.bin");
    value.mutable_blobfilevalue()->set_offset(offset);
    block.add_outputs("y");
    return model.SerializeAsString();
  }
};

TEST(LargeWeights, AreReadBeyondFourGibibytes) {
  Package package;
  package.write(kFarAway);
  ASSERT_GT(fs::file_size(package.path / "Data/com.apple.CoreML/weights/weight.bin"), kFarAway);
  const auto model = import_model(format::open_model(package.path.string()).value(), {});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const ir::Value& y = *model->program.functions[0]->body().outputs()[0];
  ASSERT_NE(y.constant(), nullptr);
  const ir::TensorView v = y.constant()->tensor.view();
  ASSERT_EQ(v.count(), 2);
  EXPECT_EQ(v.as<float>()[0], 1.5f);
  EXPECT_EQ(v.as<float>()[1], -2.25f);
}

}  // namespace
}  // namespace moka::import
