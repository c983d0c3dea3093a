// SPDX-License-Identifier: Apache-2.0
#include "format/message/message.h"

#include <gtest/gtest.h>

#include "format/format_util.h"
#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

using namespace std::string_literals;

template <class T>
T ok(Result<T> r) {
  EXPECT_TRUE(r.ok()) << r.error().to_string();
  return std::move(r).value();
}
void ok(Status s) { EXPECT_TRUE(s.ok()) << s.error().to_string(); }

std::string bytes_of(const Message& m) { return std::string(ok(m.serialize()).joined().text()); }
Message parsed(const std::string& type, const std::string& bytes) {
  return ok(Message::parse(type, Bytes::from(bytes)));
}

template <class T>
std::string refusal(const Result<T>& r) {
  return r.ok() ? "accepted" : r.error().to_string();
}
std::string refusal(const Status& s) { return s.ok() ? "accepted" : s.error().to_string(); }

proto::Model network() {
  proto::Model model;
  model.set_specificationversion(4);
  auto* input = model.mutable_description()->add_input();
  input->set_name("x");
  input->mutable_type()->mutable_multiarraytype()->add_shape(-3);
  input->mutable_type()->mutable_multiarraytype()->set_datatype(proto::ArrayFeatureType::FLOAT32);
  (*model.mutable_description()->mutable_metadata()->mutable_userdefined())["key"] = "value";
  auto* layer = model.mutable_neuralnetwork()->add_layers();
  layer->set_name("dense");
  layer->add_input("x");
  layer->add_output("y");
  auto* dense = layer->mutable_innerproduct();
  dense->set_inputchannels(3);
  for (float v : {1.5f, -2.f, 0.25f}) dense->mutable_weights()->add_floatvalue(v);
  return model;
}

TEST(Messages, WriteWhatProtobufWrites) {
  Message m = ok(Message::make("Model"));
  ok(m.set("specificationVersion", int64_t{4}));
  Message layer = ok(ok(m.edit("neuralNetwork")).edit("layers"));
  ok(layer.set("name", "dense"s));
  ok(layer.set("output", "y"s));  // fields are sorted by number, whatever the order of the calls
  ok(layer.set("input", "x"s));
  Message dense = ok(layer.edit("innerProduct"));
  ok(dense.set("inputChannels", int64_t{3}));
  const std::vector<float> weights{1.5f, -2.f, 0.25f};
  ok(ok(dense.edit("weights")).set_packed("floatValue", {std::as_bytes(std::span(weights)), nullptr}));
  ok(dense.set("hasBias", false));  // a default value, which proto3 does not write
  Message input = ok(ok(m.edit("description")).edit("input"));
  ok(input.set("name", "x"s));
  Message array = ok(ok(input.edit("type")).edit("multiArrayType"));
  const Scalar shape[] = {int64_t{-3}};
  ok(array.set_all("shape", shape));
  ok(array.set("dataType", "FLOAT32"s));
  Message entry = ok(ok(ok(m.child("description")).edit("metadata")).edit("userDefined"));
  ok(entry.set("key", "key"s));
  ok(entry.set("value", "value"s));
  EXPECT_EQ(bytes_of(m), network().SerializeAsString());
}

TEST(Messages, ReadWhatProtobufWrites) {
  Message m = parsed("Model", network().SerializeAsString());
  EXPECT_EQ(ok(m.names()), (std::vector<std::string>{"specificationVersion", "description", "neuralNetwork"}));
  EXPECT_EQ(ok(m.which("Type")), "neuralNetwork");
  EXPECT_EQ(std::get<int64_t>(ok(m.values("specificationVersion"))[0]), 4);
  Message array = ok(ok(ok(ok(m.child("description")).child("input")).child("type")).child("multiArrayType"));
  EXPECT_EQ(std::get<int64_t>(ok(array.values("shape"))[0]), -3);
  EXPECT_EQ(std::get<std::string>(ok(array.values("dataType"))[0]), "FLOAT32");
  EXPECT_EQ(ok(array.count("shape")), 1u);
  Message weights = ok(ok(ok(ok(m.child("neuralNetwork")).child("layers")).child("innerProduct")).child("weights"));
  EXPECT_EQ(ok(weights.count("floatValue")), 3u);
  EXPECT_EQ(ok(weights.packed("floatValue")).size(), 12u);
  EXPECT_EQ(std::get<double>(ok(weights.values("floatValue"))[1]), -2.0);
}

TEST(Messages, MembersOfAOneofReplaceEachOther) {
  Message m = parsed("Model", network().SerializeAsString());
  ok(m.edit("identity"));
  EXPECT_EQ(ok(m.which("Type")), "identity");
  EXPECT_EQ(ok(m.count("neuralNetwork")), 0u);
  proto::Model read;
  ASSERT_TRUE(read.ParseFromString(bytes_of(m)));
  EXPECT_TRUE(read.has_identity());
}

TEST(Messages, AreCopiedIntoFields) {
  Message pipeline = ok(Message::make("Pipeline"));
  const Message model = parsed("Model", network().SerializeAsString());
  ok(pipeline.set("models", model));
  ok(pipeline.set("models", model));
  ok(ok(pipeline.child("models", 1)).set("specificationVersion", int64_t{5}));
  ok(pipeline.set("names", "first"s));
  proto::Pipeline read;
  ASSERT_TRUE(read.ParseFromString(bytes_of(pipeline)));
  EXPECT_EQ(read.models(0).specificationversion(), 4);
  EXPECT_EQ(read.models(1).specificationversion(), 5);
  ok(pipeline.remove("models", 0));
  EXPECT_EQ(ok(pipeline.count("models")), 1u);
  EXPECT_NE(refusal(pipeline.child("models", 1)).find("expected an index below 1, got 1"), std::string::npos);
}

TEST(Messages, RefuseWhatDoesNotFit) {
  EXPECT_NE(refusal(Message::make("Modell")).find("no message 'Modell'"), std::string::npos);
  Message layer = ok(Message::make("InnerProductLayerParams"));
  const auto says = [&](const char* field, const Scalar& value, const std::string& what) {
    const std::string got = refusal(layer.set(field, value));
    EXPECT_NE(got.find(what), std::string::npos) << got;
  };
  says("inputChannel", int64_t{1}, "InnerProductLayerParams has no field 'inputChannel'; it has: inputChannels, ");
  says("inputChannels", int64_t{-1}, "field 'inputChannels': expected an integer of 0 or more, got -1");
  says("inputChannels", 2.0, "expected an integer of 0 or more, got 2");
  says("inputChannels", true, "got true");
  says("hasBias", int64_t{1}, "field 'hasBias': expected true or false, got 1");
  says("weights", int64_t{1}, "field 'weights': expected a WeightParams, got 1");
  EXPECT_NE(refusal(layer.set("weights", layer)).find("expected a WeightParams, got a InnerProductLayerParams"),
            std::string::npos);
  Message image = ok(Message::make("ImageFeatureType"));
  const std::string got = refusal(image.set("colorSpace", "CMYK"s));
  EXPECT_NE(got.find("one of INVALID_COLOR_SPACE, GRAYSCALE, RGB, BGR, GRAYSCALE_FLOAT16, got 'CMYK'"),
            std::string::npos)
      << got;
  Message feature = ok(Message::make("FeatureDescription"));
  EXPECT_NE(refusal(feature.set("name", "\xff"s)).find("expected text in UTF-8"), std::string::npos);
  Message range = ok(Message::make("TensorType"));
  EXPECT_EQ(refusal(range.set("rank", int64_t{-1})), "accepted");
  Message top = ok(Message::make("Model"));
  EXPECT_NE(
      refusal(top.set("specificationVersion", int64_t{1} << 31)).find("expected a 32-bit integer, got 2147483648"),
      std::string::npos);
  EXPECT_NE(refusal(ok(Message::make("WeightParams")).set_packed("floatValue", Bytes::from("12345"))).find("5 bytes"),
            std::string::npos);
}

TEST(Messages, OfAFieldThatOccursTwiceAreMerged) {
  const proto::Model a = network();
  proto::Model b;
  b.mutable_description()->set_predictedfeaturename("label");
  Message m = parsed("Model", a.SerializeAsString() + b.SerializeAsString());
  ok(m.decode_all());
  proto::Model merged = a;
  merged.MergeFrom(b);
  proto::Model read;
  ASSERT_TRUE(read.ParseFromString(bytes_of(m)));
  EXPECT_EQ(read.SerializeAsString(), merged.SerializeAsString());
  EXPECT_EQ(bytes_of(m).size(), merged.SerializeAsString().size());
}

/// A field 7777 with the text "new".
const std::string planted = "\x8a\xe6\x03\x03new"s;

TEST(Messages, KeepUnknownFieldsAtEveryDepth) {
  proto::Model model = network();
  auto plant = [](auto* message) { ASSERT_TRUE(message->MergeFromString(planted)); };
  plant(&model);
  plant(model.mutable_description());
  plant(model.mutable_description()->mutable_input(0)->mutable_type());
  plant(model.mutable_neuralnetwork());
  plant(model.mutable_neuralnetwork()->mutable_layers(0));
  plant(model.mutable_neuralnetwork()->mutable_layers(0)->mutable_innerproduct()->mutable_weights());
  const std::string before = model.SerializeAsString();
  Message m = parsed("Model", before);
  ok(m.decode_all());
  EXPECT_EQ(bytes_of(m), before);
  // A change next to them leaves them where they are.
  ok(ok(ok(m.child("neuralNetwork")).child("layers")).set("name", "other"s));
  model.mutable_neuralnetwork()->mutable_layers(0)->set_name("other");
  proto::Model read;
  ASSERT_TRUE(read.ParseFromString(bytes_of(m)));
  EXPECT_EQ(read.SerializeAsString(), model.SerializeAsString());
  size_t count = 0;
  for (size_t at = 0; (at = bytes_of(m).find(planted, at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 6u);
}

TEST(Messages, FieldsOfAnotherWireTypeAreKept) {
  const std::string text_version = "\x0a\x01x"s;  // specificationVersion as text
  Message m = parsed("Model", text_version);
  EXPECT_EQ(ok(m.count("specificationVersion")), 0u);
  ok(m.edit("identity"));
  EXPECT_EQ(bytes_of(m).substr(0, 3), text_version);
}

TEST(Messages, DamagedBytesAreErrors) {
  const std::string whole = network().SerializeAsString();
  for (size_t at = 0; at < whole.size(); ++at)
    for (int value = 0; value < 256; value += 5) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      auto m = Message::parse("Model", Bytes::from(damaged));
      if (!m.ok()) {
        EXPECT_EQ(m.error().code(), ErrorCode::malformed);
      } else if (m->decode_all().ok()) {
        EXPECT_TRUE(m->serialize().ok());
      }
    }
  std::string deep;  // pipelines inside each other
  for (int i = 0; i < 1000; ++i) {
    const auto put = [&](uint8_t tag_low, uint8_t tag_high) {
      std::string size;
      for (size_t n = deep.size(); size.empty() || n > 0; n >>= 7)
        size += static_cast<char>((n & 0x7f) | (n >> 7 > 0 ? 0x80 : 0));
      deep = std::string{static_cast<char>(tag_low)} + (tag_high ? std::string{static_cast<char>(tag_high)} : "") +
             size + deep;
    };
    put(0x0a, 0);
    put(0xd2, 0x0c);
  }
  EXPECT_NE(refusal(parsed("Model", deep).decode_all()).find("nest deeper than 256"), std::string::npos);
}

TEST(Messages, SpecificationsOfRealModelsAreWrittenAsTheyWere) {
  MOKA_NEEDS_MODELS(folder);
  size_t equal = 0, all = 0;
  for (const auto& path : test::find_models(*folder)) {
    SCOPED_TRACE(path.string());
    if (path.extension() == ".mlmodelc") continue;
    auto file = path.extension() == ".gz" ? open_model_bytes(Bytes::from(test::gunzip(path)), {})
                                          : open_model(path.string(), {.any_kind = true});
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    ++all;
    Message m = ok(Message::parse("Model", file->raw()));
    ok(m.decode_all());
    const std::string written = bytes_of(m);
    if (written == file->raw().text()) {
      ++equal;
      continue;
    }
    // Protobuf reads both alike: only the encoding of equal values differs.
    auto again = open_model_bytes(Bytes::from(written), {}, {.any_kind = true});
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(again->spec().SerializeAsString(), file->spec().SerializeAsString());
  }
  EXPECT_GE(all, 30u);
  EXPECT_EQ(equal, all) << "models whose bytes differ";
}

}  // namespace
}  // namespace moka::format
