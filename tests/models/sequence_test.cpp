// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/model_util.h"
#include "models_folder.h"

namespace moka::test {
namespace {

using Json = nlohmann::json;

MultiArray one_hot(size_t index, int64_t size) {
  MultiArray a(DataType::float64, {size});
  a.as<double>()[index] = 1;
  return a;
}

/// Whole sentences, states carried by hand, against tests/golden/seq2seq_truth.py.
TEST(Translator, MatchesNumpy) {
  MOKA_NEEDS_MODELS(folder);
  Model encoder = Model::load((*folder / "seq2seq_lstm/Es2EnCharEncoder.mlmodel").string());
  Model decoder = Model::load((*folder / "seq2seq_lstm/Es2EnCharDecoder.mlmodel").string());
  std::ifstream file(std::string(MOKA_GOLDEN) + "/seq2seq/sequences.json");
  double worst = 0;
  const Json cases = Json::parse(file);
  for (const auto& [name, c] : cases.items()) {
    SCOPED_TRACE(name);
    Features state;
    for (size_t index : c.at("input")) {
      Features in{{"encodedSeq", one_hot(index, 101)}};
      if (!state.empty()) {
        in["encoder_lstm_h_in"] = state.at("encoder_lstm_h_out");
        in["encoder_lstm_c_in"] = state.at("encoder_lstm_c_out");
      }
      state = encoder.predict(in);
    }
    for (size_t k = 0; k < 16; k++) {
      worst = std::max(worst, std::abs(state.array("encoder_lstm_h_out").at(static_cast<int64_t>(16 * k)) -
                                       c.at("encoder_h")[k].get<double>()));
      worst = std::max(worst, std::abs(state.array("encoder_lstm_c_out").at(static_cast<int64_t>(16 * k)) -
                                       c.at("encoder_c")[k].get<double>()));
    }
    FeatureValue h = state.at("encoder_lstm_h_out"), cell = state.at("encoder_lstm_c_out");
    size_t index = 0, n = 0;
    for (const auto& expected : c.at("output")) {
      Features out =
          decoder.predict({{"encodedChar", one_hot(index, 87)}, {"decoder_lstm_h_in", h}, {"decoder_lstm_c_in", cell}});
      auto p = out.array("nextCharProbs").as<double>();
      index = static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin());
      ASSERT_EQ(index, expected.get<size_t>()) << "character " << n;
      worst = std::max(worst, std::abs(p[index] - c.at("probability")[n++].get<double>()));
      h = out.at("decoder_lstm_h_out");
      cell = out.at("decoder_lstm_c_out");
    }
  }
  std::cout << "  largest difference " << worst << "\n";
  EXPECT_LE(worst, 1e-5);
}

/// Chunks of sound with states carried by the caller, plain and with quantized weights, compared with
/// tests/golden/silero_truth.py. A quantized model must match the result of its own quantized weights, which is a
/// stricter test than closeness to the plain model.
TEST(VoiceDetector, MatchesNumpy) {
  MOKA_NEEDS_MODELS(folder);
  for (const char* name : {"silero-vad-unified-v6.0.0", "unified_int8", "unified_palette_4bit"}) {
    Model m = Model::load((*folder / "silero_vad" / (std::string(name) + ".mlpackage")).string());
    std::ifstream file(std::string(MOKA_GOLDEN) + "/silero/" + name + ".json");
    const Json chunks = Json::parse(file);
    FeatureValue h = MultiArray(DataType::float32, {1, 128}), c = MultiArray(DataType::float32, {1, 128});
    double worst = 0;
    constexpr double kLoudness[] = {0.02, 0.5, 0.1};
    for (size_t k = 0; k < chunks.size(); k++) {
      double a = kLoudness[k % 3];
      Features out = m.predict(
          {{"audio_input", MultiArray::of(draw(k, 576, -a, a), {1, 576})}, {"hidden_state", h}, {"cell_state", c}});
      worst = std::max(worst, std::abs(out.array("vad_output").at(0) - chunks[k].at("vad").get<double>()));
      for (int64_t i = 0; i < 16; i++) {
        worst = std::max(worst, std::abs(out.array("new_hidden_state").at(8 * i) -
                                         chunks[k].at("hidden")[static_cast<size_t>(i)].get<double>()));
        worst = std::max(worst, std::abs(out.array("new_cell_state").at(8 * i) -
                                         chunks[k].at("cell")[static_cast<size_t>(i)].get<double>()));
      }
      h = out.at("new_hidden_state");
      c = out.at("new_cell_state");
    }
    std::cout << "  " << name << ": largest difference " << worst << "\n";
    EXPECT_LE(worst, 1e-5) << name;
  }
}

/// A loop over TensorLists: a sequence of frames with the states carried, on the usual devices and on the reference.
TEST(EchoCanceller, StreamsAlikeOnEveryDevice) {
  MOKA_NEEDS_MODELS(folder);
  std::string path = (*folder / "dtln_aec/DTLN_AEC_128_Part1.mlpackage").string();
  auto stream = [&](ModelConfiguration c) {
    Model m = Model::load(path, c);
    std::vector<Features> frames;
    FeatureValue states = MultiArray(DataType::float32, {1, 2, 128, 2});
    for (uint64_t n = 0; n < 12; n++) {
      std::vector<float> lpb = draw(n, 257, 0, 2), mic = draw(n + 100, 257, 0, 2);
      Features out = m.predict({{"lpb_magnitude", MultiArray::of(lpb, {1, 1, 257})},
                                {"mic_magnitude", MultiArray::of(mic, {1, 1, 257})},
                                {"states_in", states}});
      const MultiArray& next =
          out.array("Identity_1").shape().size() == 4 ? out.array("Identity_1") : out.array("Identity");
      states = next;
      frames.push_back(out);
    }
    return frames;
  };
  auto expected = stream({});
  double moved = 0;
  for (size_t n = 1; n < expected.size(); n++) moved = std::max(moved, difference(expected[n], expected[n - 1]));
  EXPECT_GT(moved, 0.01) << "the frames change nothing";
  ModelConfiguration reference, exact, unshared;
  reference.device = "reference";
  unshared.reuse_buffers = false;
  unshared.optimize = false;
  exact.precision = Precision::exact;
  double worst[3] = {};
  auto a = stream(reference), b = stream(unshared), c = stream(exact);
  for (size_t n = 0; n < expected.size(); n++) {
    worst[0] = std::max(worst[0], difference(a[n], expected[n]));
    worst[1] = std::max(worst[1], difference(b[n], expected[n]));
    worst[2] = std::max(worst[2], difference(c[n], expected[n]));
  }
  std::cout << "  reference " << worst[0] << ", not optimised " << worst[1] << ", exact " << worst[2] << "\n";
  // Outputs are float16: one unit in the last place of numbers below 1 is 2^-11.
  EXPECT_LE(worst[0], std::ldexp(1, -11));
  EXPECT_LE(worst[1], std::ldexp(1, -11));
  EXPECT_LE(worst[2], 16 * std::ldexp(1, -11));
}

}  // namespace
}  // namespace moka::test
