// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

// Numbers of the members of Model.Type in Core ML's specification.
constexpr int type_numbers[] = {200, 201, 202, 300,  301,  302,  303,  304,  400,  401,  402, 403, 404,
                                500, 501, 502, 555,  556,  560,  600,  601,  602,  603,  604, 606, 607,
                                609, 610, 900, 2000, 2001, 2002, 2003, 2004, 2005, 2006, 3000};

TEST(Types, EveryMemberDecodes) {
  static_assert(std::size(type_numbers) == 37);
  for (int number : type_numbers) {
    std::string spec = "\x08\x07";  // specificationVersion 7
    for (uint64_t key = static_cast<uint64_t>(number) << 3 | 2;; key >>= 7) {
      spec += static_cast<char>(key < 128 ? key : (key & 127) | 128);
      if (key < 128) break;
    }
    spec += '\0';
    auto file = open_model_bytes(Bytes::from(spec), {});
    ASSERT_TRUE(file.ok()) << number << ": " << file.error().to_string();
    EXPECT_EQ(static_cast<int>(file->spec().Type_case()), number);
    EXPECT_EQ(file->spec().specificationversion(), 7);
  }
}

TEST(Types, UnknownTypeIsNamed) {
  auto file = open_model_bytes(Bytes::from("\x08\x63"), {});
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().to_string().find("specification version 99"), std::string::npos);
}

std::string refusal(const std::string& bytes) {
  auto file = open_model_bytes(Bytes::from(bytes), {});
  if (file.ok()) return "opened";
  EXPECT_EQ(file.error().code(), ErrorCode::malformed);
  return file.error().to_string();
}

TEST(Types, OtherFilesAreRecognised) {
  using namespace std::string_literals;
  const std::pair<std::string, const char*> files[] = {
      {"\x89PNG\r\n\x1a\n"s, "a PNG picture"},
      {"\xff\xd8\xff\xe0 JFIF"s, "a JPEG picture"},
      {"\x1f\x8b\x08", "gzip-compressed data: unpack it first"},
      {"PK\x03\x04", "a zip archive"},
      {"PK\x03\x04"s + std::string(22, '\0') + "\x15\0\0\0"s + "Net.mlpackage/a.json!",
       "a zip archive with 'Net.mlpackage'"},
      {"PK\x03\x04"s + std::string(22, '\0') + "\x10\0\0\0"s + "archive/data.pkl", "a PyTorch file"},
      {"\x89HDF\r\n\x1a\n"s, "an HDF5 file"},
      {"\x1c\0\0\0TFL3"s, "a TensorFlow Lite model"},
      {"\x93NUMPY\x01\0"s, "a NumPy array"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0", "a Git LFS pointer"},
      {"{\"a\": 1}", "JSON text"},
      {"<!DOCTYPE html><html>", "an HTML page"},
      {"hello\nworld", "text ('hello')"},
      {"program(1.0)\n{}", "MIL text"},
      {std::string(200, '\0'), "nothing but zero bytes"},
      {"", "an empty file"},
  };
  for (const auto& [bytes, what] : files) {
    EXPECT_NE(refusal(bytes).find(cat("expected a Core ML specification, got ", what)), std::string::npos)
        << what << ": " << refusal(bytes);
  }
  // ir_version 7, producer_name "pytorch", an empty graph, an opset.
  EXPECT_NE(refusal("\x08\x07\x12\x07pytorch\x3a\x02\x0a\x00\x42\x02\x10\x0d"s).find("an ONNX model"),
            std::string::npos)
      << refusal("\x08\x07\x12\x07pytorch\x3a\x02\x0a\x00\x42\x02\x10\x0d"s);
}

proto::Model small(int version) {
  proto::Model model;
  model.set_specificationversion(version);
  model.mutable_description()->add_input()->set_name("RIFF");
  model.mutable_identity();
  return model;
}

TEST(Versions, KnownOnesAreNotRemarkedOn) {
  auto file = open_model_bytes(Bytes::from(small(10).SerializeAsString()), {});
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(file->remark(), "");
}

TEST(Versions, FutureOnesRunWhereEverythingInThemIsKnown) {
  auto file = open_model_bytes(Bytes::from(small(99).SerializeAsString()), {});
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_NE(file->remark().find("specification version 99 is newer than 10"), std::string::npos) << file->remark();
  proto::Model outer = small(8);
  *outer.mutable_pipeline()->add_models() = small(12);
  file = open_model_bytes(Bytes::from(outer.SerializeAsString()), {});
  ASSERT_TRUE(file.ok());
  EXPECT_NE(file->remark().find("version 12"), std::string::npos) << file->remark();
}

TEST(Versions, DamagedFutureOnesAreErrorsOrModels) {
  proto::Model model = small(99);
  auto* layer = model.mutable_neuralnetwork()->add_layers();
  layer->set_name("l");
  layer->mutable_softmaxnd()->set_axis(-1);
  (*model.mutable_description()->mutable_metadata()->mutable_userdefined())["a"] = "b";
  const std::string whole = model.SerializeAsString();
  ASSERT_TRUE(open_model_bytes(Bytes::from(whole), {}).ok());
  int refused = 0, opened = 0;
  for (size_t at = 2; at < whole.size(); ++at)
    for (int value = 0; value < 256; ++value) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      auto file = open_model_bytes(Bytes::from(damaged), {});
      ++(file.ok() ? opened : refused);
      if (file.ok()) continue;
      EXPECT_FALSE(file.error().to_string().empty());
    }
  for (size_t n = 0; n < whole.size(); ++n) (void)open_model_bytes(Bytes::from(whole.substr(0, n)), {});
  EXPECT_GT(refused, 1000);
  EXPECT_GT(opened, 1000);
}

std::string future_error(const std::string& bytes) {
  auto file = open_model_bytes(Bytes::from(bytes), {});
  if (file.ok()) return "opened";
  EXPECT_EQ(file.error().code(), ErrorCode::unsupported);
  return file.error().to_string();
}

TEST(Versions, FutureOnesAreRefusedForWhatIsNotKnown) {
  using namespace std::string_literals;
  // Field 700 of the model, a varint; field 99 of an input's type; an element type that does not exist.
  EXPECT_NE(future_error(small(99).SerializeAsString() + "\xe0\x2b\x01"s).find("has not: field 700"), std::string::npos)
      << future_error(small(99).SerializeAsString() + "\xe0\x2b\x01"s);
  proto::Model model = small(99);
  std::string type = "\x9a\x06\x00"s, feature = "\x0a\x01x\x1a"s + static_cast<char>(type.size()) + type;
  std::string description = "\x0a"s + static_cast<char>(feature.size()) + feature;
  const std::string with_type =
      model.SerializeAsString() + "\x12"s + static_cast<char>(description.size()) + description;
  EXPECT_NE(future_error(with_type).find("description.input.type: field 99"), std::string::npos)
      << future_error(with_type);
  model.mutable_description()->mutable_input(0)->mutable_type()->mutable_multiarraytype()->set_datatype(
      static_cast<proto::ArrayFeatureType_ArrayDataType>(77));
  EXPECT_NE(future_error(model.SerializeAsString()).find("description.input.type.multiArrayType: dataType 77"),
            std::string::npos)
      << future_error(model.SerializeAsString());
  // Deep inside: a layer of a network in a pipeline.
  proto::Model inner = small(99), outer = small(8);
  auto* layer = inner.mutable_neuralnetwork()->add_layers();
  ASSERT_TRUE(layer->mutable_convolution()->MergeFromString("\xe0\x2b\x01"s));
  *outer.mutable_pipeline()->add_models() = inner;
  EXPECT_NE(future_error(outer.SerializeAsString()).find("pipeline.models.neuralNetwork.layers.convolution: field 700"),
            std::string::npos)
      << future_error(outer.SerializeAsString());
  // A kind of model that is not known at all.
  EXPECT_NE(future_error("\x08\x63\xa2\x32\x00"s).find("field 804"), std::string::npos)
      << future_error("\x08\x63\xa2\x32\x00"s);
}

TEST(Versions, FutureOnesRunWhereNoPredictionNeedsWhatIsNotKnown) {
  const std::string field_700 = "\xe0\x2b\x01";
  proto::Model model = small(99);
  ASSERT_TRUE(model.mutable_description()->mutable_metadata()->MergeFromString(field_700));
  ASSERT_TRUE(model.mutable_description()->add_traininginput()->MergeFromString(field_700));
  auto* network = model.mutable_neuralnetwork();
  ASSERT_TRUE(network->mutable_updateparams()->mutable_optimizer()->MergeFromString(field_700));
  auto file = open_model_bytes(Bytes::from(model.SerializeAsString()), {});
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_NE(file->remark().find("ignored, because no prediction needs it: description.trainingInput: field 700; "
                                "description.metadata: field 700; neuralNetwork.updateParams.optimizer: field 700"),
            std::string::npos)
      << file->remark();
  ASSERT_TRUE(network->MergeFromString(field_700));
  EXPECT_EQ(future_error(model.SerializeAsString()).find("ignored"), std::string::npos);
  EXPECT_NE(future_error(model.SerializeAsString()).find("has not: neuralNetwork: field 700"), std::string::npos)
      << future_error(model.SerializeAsString());
}

}  // namespace
}  // namespace moka::format
