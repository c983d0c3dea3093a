// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

std::vector<float> ramp(size_t n, float from) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), from);
  return v;
}

void set_floats(proto::WeightParams& weight, const std::vector<float>& v) {
  weight.mutable_floatvalue()->Assign(v.begin(), v.end());
}

ModelFile reopen(const proto::Model& model) {
  auto file = open_model_bytes(Bytes::from(model.SerializeAsString()), {});
  EXPECT_TRUE(file.ok()) << file.error().to_string();
  return std::move(*file);
}

/// The payload must lie inside the specification's bytes, not in a copy.
void expect_floats_in_place(const ModelFile& file, const proto::WeightParams& weight, const std::vector<float>& want) {
  EXPECT_EQ(weight.floatvalue_size(), 0);
  auto data = file.weight_data(weight);
  ASSERT_TRUE(data.ok()) << data.error().to_string();
  ASSERT_EQ(data->kind, WeightData::Kind::float32);
  ASSERT_EQ(data->bytes.size(), want.size() * 4);
  EXPECT_EQ(std::memcmp(data->bytes.data(), want.data(), data->bytes.size()), 0);
  EXPECT_GE(data->bytes.data(), file.raw().data());
  EXPECT_LE(data->bytes.data() + data->bytes.size(), file.raw().data() + file.raw().size());
}

proto::Model neighbors(int count, int dimensions) {
  proto::Model model;
  model.set_specificationversion(4);
  auto* classifier = model.mutable_knearestneighborsclassifier();
  auto* index = classifier->mutable_nearestneighborsindex();
  index->set_numberofdimensions(dimensions);
  index->mutable_linearindex();
  for (int i = 0; i < count; i++) {
    auto* sample = index->add_floatsamples();
    for (int j = 0; j < dimensions; j++) sample->add_vector(static_cast<float>(i * dimensions + j));
    classifier->mutable_int64classlabels()->add_vector(i % 3);
  }
  return model;
}

void expect_ramp(const ModelFile& file, size_t count, size_t dimensions) {
  const auto data = file.sample_data(file.spec().knearestneighborsclassifier().nearestneighborsindex());
  ASSERT_TRUE(data.ok()) << data.error().to_string();
  EXPECT_EQ(data->count, count);
  EXPECT_EQ(data->length, dimensions);
  ASSERT_NE(data->runs, nullptr);
  const Bytes all = *data->runs->joined();
  const auto want = ramp(count * dimensions, 0);
  ASSERT_EQ(all.size(), want.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(all.data(), want.data(), all.size()), 0);
  EXPECT_EQ(data->runs->joined()->data(), all.data());
}

TEST(Payload, InsideLoopsBranchesAndPipelines) {
  proto::Model model;
  model.set_specificationversion(4);
  auto* inner = model.mutable_pipelineclassifier()->mutable_pipeline()->add_models();
  inner = inner->mutable_pipeline()->add_models();
  auto* layer = inner->mutable_neuralnetworkregressor()->add_layers();
  layer->set_name("outer");
  auto* loop = layer->mutable_loop();
  auto* in_loop = loop->mutable_bodynetwork()->add_layers();
  in_loop->set_name("in loop");
  auto* in_branch = in_loop->mutable_branch()->mutable_elsebranch()->add_layers();
  auto a = ramp(2000, 1), b = ramp(3000, 7), c = ramp(10, 3);
  set_floats(*in_branch->mutable_innerproduct()->mutable_weights(), a);
  set_floats(*in_branch->mutable_innerproduct()->mutable_bias(), c);
  set_floats(*loop->mutable_conditionnetwork()->add_layers()->mutable_activation()->mutable_prelu()->mutable_alpha(),
             b);

  ModelFile file = reopen(model);
  const auto& outer =
      file.spec().pipelineclassifier().pipeline().models(0).pipeline().models(0).neuralnetworkregressor().layers(0);
  EXPECT_EQ(outer.name(), "outer");
  EXPECT_EQ(outer.loop().bodynetwork().layers(0).name(), "in loop");
  const auto& product = outer.loop().bodynetwork().layers(0).branch().elsebranch().layers(0).innerproduct();
  expect_floats_in_place(file, product.weights(), a);
  expect_floats_in_place(file, outer.loop().conditionnetwork().layers(0).activation().prelu().alpha(), b);
  EXPECT_FALSE(product.bias().has_payload_index());
  auto bias = file.weight_data(product.bias());
  ASSERT_TRUE(bias.ok());
  ASSERT_EQ(bias->bytes.size(), 40u);
  EXPECT_EQ(std::memcmp(bias->bytes.data(), c.data(), 40), 0);
}

TEST(Payload, OutlivesItsFile) {
  proto::Model model;
  auto* product = model.mutable_neuralnetwork()->add_layers()->mutable_innerproduct();
  set_floats(*product->mutable_bias(), ramp(10, 1));
  product->mutable_weights()->set_float16value(std::string(5000, 'x'));
  WeightData bias, weights;
  {
    ModelFile file = reopen(model);
    const auto& p = file.spec().neuralnetwork().layers(0).innerproduct();
    bias = *file.weight_data(p.bias());
    weights = *file.weight_data(p.weights());
  }
  float last;
  std::memcpy(&last, bias.bytes.data() + 36, 4);
  EXPECT_EQ(last, 10);
  EXPECT_EQ(weights.bytes.text(), std::string(5000, 'x'));
}

TEST(Payload, KindsAndQuantization) {
  proto::Model model;
  auto* layers = model.mutable_neuralnetworkclassifier();
  auto* w = layers->add_layers()->mutable_convolution()->mutable_weights();
  w->set_rawvalue(std::string(6000, '\1'));
  w->mutable_quantization()->set_numberofbits(8);
  w->mutable_quantization()->mutable_lookuptablequantization()->add_floatvalue(2.5f);
  layers->add_layers()->mutable_innerproduct()->mutable_weights()->set_int8rawvalue(std::string(6000, '\2'));
  layers->add_layers()->mutable_loadconstant()->mutable_data()->set_float16value(std::string(6000, '\3'));
  layers->add_layers()->mutable_bias();
  ModelFile file = reopen(model);
  const auto& got = file.spec().neuralnetworkclassifier();
  const auto& raw = got.layers(0).convolution().weights();
  EXPECT_EQ(raw.quantization().lookuptablequantization().floatvalue(0), 2.5f);
  EXPECT_EQ(file.weight_data(raw)->kind, WeightData::Kind::raw);
  EXPECT_EQ(file.weight_data(got.layers(1).innerproduct().weights())->kind, WeightData::Kind::int8_raw);
  EXPECT_EQ(file.weight_data(got.layers(2).loadconstant().data())->kind, WeightData::Kind::float16);
  EXPECT_EQ(file.weight_data(got.layers(3).bias().bias())->kind, WeightData::Kind::none);
}

TEST(Payload, MoreThanOneKindIsAnError) {
  proto::Model model;
  auto* w = model.mutable_neuralnetwork()->add_layers()->mutable_innerproduct()->mutable_weights();
  w->set_rawvalue(std::string(6000, '\1'));
  set_floats(*w, ramp(3000, 0));
  ModelFile file = reopen(model);
  auto data = file.weight_data(file.spec().neuralnetwork().layers(0).innerproduct().weights());
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.error().code(), ErrorCode::malformed);
}

TEST(Payload, ForgedIndexIsDropped) {
  proto::Model model;
  auto* network = model.mutable_neuralnetwork();
  network->add_layers()->mutable_innerproduct()->mutable_weights()->set_payload_index(0);
  network->add_layers()->mutable_innerproduct()->mutable_weights()->set_rawvalue(std::string(9000, 'r'));
  ModelFile file = reopen(model);
  const auto& got = file.spec().neuralnetwork();
  EXPECT_FALSE(got.layers(0).innerproduct().weights().has_payload_index());
  EXPECT_EQ(file.weight_data(got.layers(0).innerproduct().weights())->kind, WeightData::Kind::none);
  EXPECT_EQ(file.weight_data(got.layers(1).innerproduct().weights())->bytes.size(), 9000u);
  proto::Model few = neighbors(2, 7);
  few.mutable_knearestneighborsclassifier()->mutable_nearestneighborsindex()->set_payload_index(0);
  expect_ramp(reopen(few), 2, 7);
  proto::WeightParams foreign;
  foreign.set_payload_index(5);
  EXPECT_FALSE(file.weight_data(foreign).ok());
}

TEST(Payload, SamplesOfNearestNeighbors) {
  const ModelFile file = reopen(neighbors(500, 7));
  const auto& index = file.spec().knearestneighborsclassifier().nearestneighborsindex();
  EXPECT_TRUE(index.has_payload_index());
  EXPECT_EQ(index.floatsamples_size(), 0);
  EXPECT_TRUE(index.has_linearindex());
  expect_ramp(file, 500, 7);
  const ModelFile few = reopen(neighbors(20, 7));
  EXPECT_FALSE(few.spec().knearestneighborsclassifier().nearestneighborsindex().has_payload_index());
  expect_ramp(few, 20, 7);

  proto::Model pipeline;
  *pipeline.mutable_pipelineclassifier()->mutable_pipeline()->add_models() = neighbors(500, 7);
  const ModelFile around = reopen(pipeline);
  const auto& inner = around.spec().pipelineclassifier().pipeline().models(0);
  EXPECT_EQ(around.sample_data(inner.knearestneighborsclassifier().nearestneighborsindex())->count, 500u);
}

TEST(Payload, SamplesAreWrittenAgain) {
  const proto::Model model = neighbors(500, 7);
  const ModelFile file = reopen(model);
  const auto whole = file.complete_specification(file.spec().SerializeAsString());
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  proto::Model back;
  ASSERT_TRUE(back.ParseFromString(*whole));
  EXPECT_EQ(back.SerializeAsString(), model.SerializeAsString());
}

TEST(Payload, SamplesOfDifferentLengthsStay) {
  proto::Model model = neighbors(500, 7);
  model.mutable_knearestneighborsclassifier()->mutable_nearestneighborsindex()->mutable_floatsamples(300)->add_vector(
      1);
  const ModelFile file = reopen(model);
  const auto& index = file.spec().knearestneighborsclassifier().nearestneighborsindex();
  EXPECT_EQ(index.floatsamples_size(), 500);
  const auto data = file.sample_data(index);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->other, 300u);
  EXPECT_EQ(data->other_length, 8u);
  EXPECT_EQ(data->runs, nullptr);
}

TEST(Payload, MoreSamples) {
  for (int before : {0, 20, 500}) {
    const ModelFile file = reopen(neighbors(before, 7));
    AddedSamples added;
    const auto numbers = ramp(14, static_cast<float>(before * 7));
    added.numbers = Bytes::copy_of(std::as_bytes(std::span(numbers)));
    added.labels = std::vector<int64_t>{8, 9};
    added.neighbors = 4;
    const auto more = file.with_samples(added);
    ASSERT_TRUE(more.ok()) << more.error().to_string();
    expect_ramp(*more, static_cast<size_t>(before) + 2, 7);
    const auto& classifier = more->spec().knearestneighborsclassifier();
    EXPECT_EQ(classifier.int64classlabels().vector_size(), before + 2);
    EXPECT_EQ(classifier.int64classlabels().vector(before + 1), 9);
    EXPECT_EQ(classifier.numberofneighbors().defaultvalue(), 4);
    if (before > 0) expect_ramp(file, static_cast<size_t>(before), 7);
  }
}

TEST(Payload, ImmediateTensorsOfPrograms) {
  proto::Model model;
  auto& function = (*model.mutable_mlprogram()->mutable_functions())["main"];
  auto& block = (*function.mutable_block_specializations())["CoreML7"];
  auto* op = block.add_operations();
  op->set_type("const");
  auto tensor = [&](const char* key) {
    return (*op->mutable_attributes())[key].mutable_immediatevalue()->mutable_tensor();
  };
  auto a = ramp(5000, 1);
  tensor("floats")->mutable_floats()->mutable_values()->Assign(a.begin(), a.end());
  tensor("bytes")->mutable_bytes()->set_values(std::string(4097, 'b'));
  for (int i = 0; i < 1000; ++i) tensor("doubles")->mutable_doubles()->add_values(i);
  for (int i = 0; i < 5000; ++i) tensor("ints")->mutable_ints()->add_values(-i);
  tensor("few")->mutable_floats()->add_values(4);
  tensor("bools")->mutable_bools()->add_values(true);
  tensor("strings")->mutable_strings()->add_values("s");
  auto* listed = (*op->mutable_inputs())["x"].add_arguments()->mutable_value();
  listed->mutable_immediatevalue()
      ->mutable_list()
      ->add_values()
      ->mutable_immediatevalue()
      ->mutable_tensor()
      ->mutable_bytes()
      ->set_values(std::string(8000, 'l'));

  ModelFile file = reopen(model);
  const auto& got = file.spec().mlprogram().functions().at("main").block_specializations().at("CoreML7").operations(0);
  auto data = [&](const char* key) { return *file.tensor_data(got.attributes().at(key).immediatevalue().tensor()); };
  EXPECT_TRUE(got.attributes().at("floats").immediatevalue().tensor().has_payload_index());
  EXPECT_EQ(data("floats").kind, TensorData::Kind::floats);
  ASSERT_EQ(data("floats").count, 5000u);
  EXPECT_EQ(std::memcmp(data("floats").bytes.data(), a.data(), 20000), 0);
  EXPECT_EQ(data("bytes").kind, TensorData::Kind::raw);
  EXPECT_EQ(data("bytes").bytes.text(), std::string(4097, 'b'));
  ASSERT_EQ(data("doubles").count, 1000u);
  double last;
  std::memcpy(&last, data("doubles").bytes.data() + 999 * 8, 8);
  EXPECT_EQ(last, 999);
  ASSERT_EQ(data("ints").count, 5000u);
  int32_t i;
  std::memcpy(&i, data("ints").bytes.data() + 4999 * 4, 4);
  EXPECT_EQ(i, -4999);
  EXPECT_EQ(data("few").count, 1u);
  EXPECT_EQ(data("bools").count, 1u);
  EXPECT_EQ(data("bools").bytes.size(), 1u);
  EXPECT_EQ(data("strings").count, 1u);
  EXPECT_EQ(data("strings").kind, TensorData::Kind::strings);
  const auto& nested = got.inputs().at("x").arguments(0).value().immediatevalue().list().values(0);
  EXPECT_EQ(file.tensor_data(nested.immediatevalue().tensor())->bytes.size(), 8000u);
}

TEST(Payload, DeepNestingIsAnError) {
  for (int depth : {20, 200, 50000}) {
    std::string body = "\x08\x01";
    auto wrap = [&](std::initializer_list<unsigned char> key) {
      std::string out;
      for (auto b : key) out += static_cast<char>(b);
      for (size_t n = body.size();; n >>= 7) {
        out += static_cast<char>(n < 128 ? n : (n & 127) | 128);
        if (n < 128) break;
      }
      body = out + body;
      if (body.size() > (1 << 20)) GTEST_FAIL() << "too large";
    };
    for (int i = 0; i < depth; ++i) {
      wrap({0x0a});        // Pipeline.models
      wrap({0xd2, 0x0c});  // Model.pipeline
    }
    auto file = open_model_bytes(Bytes::from(body), {});
    EXPECT_EQ(file.ok(), depth == 20);
    if (!file.ok()) {
      EXPECT_EQ(file.error().code(), ErrorCode::malformed);
      EXPECT_NE(file.error().to_string().find("256"), std::string::npos) << file.error().to_string();
    }
  }
}

TEST(Payload, BudgetLimitsDecoding) {
  proto::Model model;
  // Empty layers: few bytes in the file, many in memory.
  for (int i = 0; i < 100000; ++i) model.mutable_neuralnetwork()->add_layers();
  std::string bytes = model.SerializeAsString();
  auto budget = std::make_shared<MemoryBudget>(1 << 20);
  auto file = open_model_bytes(Bytes::from(bytes), {}, {budget});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::out_of_budget);
  EXPECT_EQ(budget->used(), 0u);
  budget = std::make_shared<MemoryBudget>(100 << 20);
  {
    auto fits = open_model_bytes(Bytes::from(bytes), {}, {budget});
    ASSERT_TRUE(fits.ok()) << fits.error().to_string();
    EXPECT_GT(budget->used(), bytes.size());
  }
  EXPECT_EQ(budget->used(), 0u);
}

}  // namespace
}  // namespace moka::format
