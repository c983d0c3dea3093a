// SPDX-License-Identifier: Apache-2.0
#include "moka/compress.h"

#include <algorithm>
#include <random>

#include "api/api_util.h"
#include "moka/program.h"

namespace moka::test {
namespace {

constexpr int64_t kWidth = 128;

/// Residual layers whose part in the sum differs, so that the first ones are a thousand times as sensitive as the last.
ModelSource residual_net(const std::string& target = "ios18") {
  ProgramBuilder b(target);
  auto x = b.input("x", DataType::float32, {1, kWidth});
  for (uint32_t i = 0; i < 6; ++i) {
    const float scale = std::pow(0.25F, static_cast<float>(i)) / std::sqrt(static_cast<float>(kWidth));
    auto y =
        b.op("linear", {{"x", x}, {"weight", random_array({kWidth, kWidth}, i, scale)}}, "layer_" + std::to_string(i));
    x = b.op("add", {{"x", x}, {"y", b.op("tanh", {{"x", y}})}}, "sum_" + std::to_string(i));
  }
  b.output(x, "y");
  return b.source();
}

double signal_to_noise(const MultiArray& value, const MultiArray& reference) {
  double signal = 0, noise = 0;
  for (int64_t i = 0; i < value.count(); ++i) {
    signal += reference.at(i) * reference.at(i);
    noise += (value.at(i) - reference.at(i)) * (value.at(i) - reference.at(i));
  }
  return 10 * std::log10(signal / noise);
}

size_t size_of(const ModelSource& source) {
  size_t out = source.specification().serialize().size();
  for (const std::string& name : source.weight_files()) out += static_cast<size_t>(source.weight_file(name).count());
  return out;
}

/// The worst of predictions that the search has not seen.
double worst_of(const ModelSource& model, const ModelSource& source) {
  const Model one = model.load(), two = source.load();
  double worst = INFINITY;
  for (uint64_t seed = 1000; seed < 1100; ++seed) {
    const Features input = two.random_inputs(seed);
    worst = std::min(worst, signal_to_noise(one.predict(input).array("y"), two.predict(input).array("y")));
  }
  return worst;
}

TEST(SearchCompression, ErrorHoldsOnInputsThatItHasNotSeen) {
  for (const std::string target : {"ios16", "ios18"}) {
    const ModelSource source = residual_net(target);
    size_t before = size_of(source);
    for (const double goal : {50.0, 20.0}) {
      CompressionSearch search;
      search.signal_to_noise = goal;
      const SearchedModel found = search_compression(source, search);
      EXPECT_TRUE(found.separate);
      EXPECT_GE(found.bound, goal);
      EXPECT_GE(found.signal_to_noise, found.bound);
      EXPECT_EQ(found.size_after, size_of(found.model));
      EXPECT_LT(found.size_after, before) << target << " " << goal;
      before = found.size_after;
      const double worst = worst_of(found.model, source);
      EXPECT_GE(worst, goal) << target;
      EXPECT_LT(worst, goal + 12) << target << ": smaller models would do";
    }
  }
}

TEST(SearchCompression, SizeHoldsAndSensitiveWeightsGetMoreBits) {
  const ModelSource source = residual_net();
  CompressionSearch search;
  search.size = size_of(source) / 8;
  const SearchedModel found = search_compression(source, search);
  EXPECT_LE(found.size_after, *search.size);
  EXPECT_GT(found.size_after, *search.size * 9 / 10);
  ASSERT_EQ(found.weights.size(), 6u);
  EXPECT_GT(found.weights[0].bytes_after, found.weights[5].bytes_after);
  // The same form everywhere is worse for as many bytes.
  CompressionOptions same;
  same.weights.form = WeightForm::palette;
  same.weights.bits = 4;
  same.weights.granularity = WeightGranularity::tensor;
  EXPECT_GT(worst_of(found.model, source), worst_of(compress_weights(source, same).model, source));
}

TEST(SearchCompression, SensitivityIsThatOfTheWeightAlone) {
  const ModelSource source = residual_net();
  CompressionSearch search;
  search.size = size_of(source) / 3;
  search.forms.resize(1);
  const Model model = source.load();
  for (uint64_t seed = 0; seed < 9; ++seed) search.inputs.push_back(model.random_inputs(seed));
  const SearchedModel found = search_compression(source, search);
  EXPECT_EQ(found.measured_inputs, 3u);
  EXPECT_EQ(found.checked_inputs, 6u);
  ASSERT_EQ(found.sensitivity.size(), 6u);
  for (const WeightSensitivity& weight : found.sensitivity) {
    ASSERT_EQ(weight.trials.size(), 2u);
    EXPECT_EQ(weight.trials[1].form, "linear 8 bits, channel");
    CompressionOptions alone;
    alone.weights.form = WeightForm::unchanged;
    alone.exceptions.emplace_back(weight.name, WeightCompression{});
    const Model changed = compress_weights(source, alone).model.load();
    double share = 0;
    for (const size_t i : {0, 3, 6}) {  // that measure the weights
      const Features& input = search.inputs[i];
      const double db = signal_to_noise(changed.predict(input).array("y"), model.predict(input).array("y"));
      share += std::pow(10, -db / 10) / 3;
    }
    EXPECT_NEAR(weight.trials[1].signal_to_noise, -10 * std::log10(share), 0.3) << weight.name;
  }
}

TEST(SearchCompression, CurveFallsAndExceptionsStay) {
  const ModelSource source = residual_net();
  CompressionSearch search;
  search.signal_to_noise = 25;
  WeightCompression none;
  none.form = WeightForm::unchanged;
  search.exceptions.emplace_back("*layer_5*", none);
  const SearchedModel found = search_compression(source, search);
  EXPECT_EQ(found.weights[5].form, "");
  EXPECT_NE(found.weights[4].form, "");
  ASSERT_GT(found.curve.size(), 5u);
  double before = INFINITY;
  size_t measured = 0;
  for (const CompressionPoint& p : found.curve) {
    measured += p.measured.has_value();
    if (p.measured) continue;
    EXPECT_LE(p.expected, before);
    before = p.expected;
  }
  EXPECT_GE(measured, 4u);
  EXPECT_GT(found.seconds_before, 0);
  EXPECT_GT(found.seconds_after, 0);
}

TEST(SearchCompression, GoalsThatCannotBeReachedAreErrors) {
  const ModelSource source = residual_net();
  CompressionSearch search;
  expect_error(ErrorKind::invalid_argument, {"one goal"}, [&] { search_compression(source, search); });
  search.size = size_of(source) / 100;
  expect_error(ErrorKind::unsupported, {"smallest", std::to_string(size_of(source)).c_str()},
               [&] { search_compression(source, search); });
  search.signal_to_noise = 40;
  expect_error(ErrorKind::invalid_argument, {"one goal"}, [&] { search_compression(source, search); });
  search.size = std::nullopt;
  WeightCompression one_bit;
  one_bit.form = WeightForm::palette;
  one_bit.bits = 1;
  one_bit.granularity = WeightGranularity::tensor;
  search.exceptions.emplace_back("*", one_bit);
  expect_error(ErrorKind::unsupported, {"40 dB"}, [&] { search_compression(source, search); });

  ProgramBuilder b("ios18");
  auto x = b.input("x", DataType::float32, {1, kWidth});
  auto y = b.op("linear", {{"x", x}, {"weight", random_array({kWidth, kWidth}, 1)}});
  b.output(b.op("reduce_argmax", {{"x", y}, {"axis", -1}}), "y");
  CompressionSearch labels;
  labels.signal_to_noise = 40;
  expect_error(ErrorKind::unsupported, {"numbers"}, [&] { search_compression(b.source(), labels); });
}

TEST(SearchCompression, InputsWithoutWhichWeightsDoNothingAreNeeded) {
  const ModelSource source = residual_net();
  CompressionSearch search;
  search.signal_to_noise = 30;
  search.forms.resize(1);
  MultiArray zeros(DataType::float32, {1, kWidth});
  std::ranges::fill(zeros.as<float>(), 0.0F);
  for (int i = 0; i < 4; ++i) {
    Features input;
    input["x"] = zeros;
    search.inputs.push_back(input);
  }
  expect_error(ErrorKind::unsupported, {"inputs", "no form of any weight changed"},
               [&] { search_compression(source, search); });
  search.inputs = {source.load().random_inputs(1)};
  EXPECT_LT(search_compression(source, search).size_after, size_of(source));
}

/// Gives the constants in the weight file an element type that the specification does not have.
void set_unknown_element_type(const ModelSource& source) {
  const Message function = source.specification().at("mlProgram").at("functions").at("value");
  for (const Message& op : function.at("block_specializations").at("value").all("operations"))
    for (const Message& entry : op.all("attributes")) {
      Message value = entry.at("value");
      if (value.which("value") != "blobFileValue") continue;
      std::vector<std::byte> bytes = value.at("type").at("tensorType").serialize();
      bytes[1] = std::byte{99};  // behind the key of dataType, the first field
      value.at("type").set("tensorType", Message::parse("MILSpec.TensorType", bytes));
    }
}

TEST(CompressWeights, WeightsOfUnknownElementTypesStay) {
  const ModelSource source = residual_net();
  set_unknown_element_type(source);
  CompressionOptions options;
  options.weights.form = WeightForm::linear;
  const CompressedModel made = compress_weights(source, options);
  EXPECT_TRUE(made.weights.empty());
  EXPECT_EQ(made.model.specification().serialize(), source.specification().serialize());
}

}  // namespace
}  // namespace moka::test
