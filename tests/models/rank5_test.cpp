// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <future>

#include "models/model_util.h"
#include "models/nn_case_util.h"
#include "models_folder.h"

/// Neural networks of the legacy mapping take [sequence, batch, C, H, W] where they describe [C] or [C, H, W].
namespace moka::test {
namespace {

using Ints = std::vector<int64_t>;

Case case_of(const char* group, const std::string& name) {
  for (Case& c : cases({group}))
    if (c.name == name) return std::move(c);
  throw std::runtime_error(name);
}

MultiArray reshaped(const MultiArray& a, Ints shape) {
  MultiArray dense = a.converted(a.type());
  return MultiArray::of(dense.as<float>(), std::move(shape));
}

/// [C] and [C, H, W] as rank 5.
Ints five(const Ints& shape) {
  Ints s{1, 1};
  s.insert(s.end(), shape.begin(), shape.end());
  s.resize(5, 1);
  return s;
}

/// Item `i` along axis 0 (sequence) or 1 (batch) of an array of rank 5. Keeps the axis.
MultiArray item(const MultiArray& a, size_t axis, int64_t i) {
  Ints shape = a.shape();
  int64_t outer = axis == 0 ? 1 : shape[0], inner = a.count() / outer / shape[axis], n = shape[axis];
  shape[axis] = 1;
  std::vector<float> v;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < inner; k++) v.push_back(static_cast<float>(a.at((o * n + i) * inner + k)));
  return MultiArray::of(v, shape);
}

template <class Act>
void expect_refused(std::initializer_list<const char*> parts, Act act) {
  try {
    act();
    ADD_FAILURE() << "expected an error";
  } catch (const Exception& e) {
    for (const char* part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << "'" << part << "' is not in: " << e.what();
  }
}

/// Whole sequences and batches through every kind of recurrent layer and related layers, compared with NumPy.
TEST(Rank5, SequencesMatchNumPy) {
  for (const Case& c : cases({"recurrent", "rank5"})) {
    SCOPED_TRACE(c.name);
    Model m = c.model();
    Features in, flat;
    for (const FeatureDescription& f : m.function().inputs) {
      MultiArray a = array(c.data.at("inputs").at(f.name));
      in[f.name] = a;
      const Ints& shape = a.shape();
      flat[f.name] = f.array.shape.size() == 1 ? reshaped(a, {shape[0], shape[1], shape[2]}) : a;
      EXPECT_EQ(f.array.shape, Ints(shape.begin() + 2, shape.begin() + (f.array.shape.size() == 1 ? 3 : 5)));
    }
    Features out = m.predict(in);
    for (const auto& [name, want] : c.data.at("outputs").items())
      EXPECT_LE(difference(FeatureValue(out.array(name).converted(DataType::float32)), FeatureValue(array(want))),
                c.tolerance())
          << name;
    EXPECT_TRUE(identical(m.predict(flat), out)) << "[sequence, batch, C] is not [sequence, batch, C, 1, 1]";
  }
}

/// Each item of a batch gives the same result as alone, including states and both directions.
TEST(Rank5, BatchesOfSequences) {
  constexpr int64_t kBatch = 3;
  for (const Case& c : cases({"recurrent"})) {
    SCOPED_TRACE(c.name);
    Model m = c.model();
    std::vector<Features> alone(kBatch);
    Features together;
    uint64_t seed = 0;
    for (const auto& [name, v] : c.data.at("inputs").items()) {
      Ints shape = v.at("shape");
      shape[1] = kBatch;
      MultiArray all = MultiArray::of(draw(seed++, array(v).count() * kBatch, -2, 2), shape);
      together[name] = all;
      for (int64_t i = 0; i < kBatch; i++) alone[static_cast<size_t>(i)][name] = item(all, 1, i);
    }
    Features out = m.predict(together);
    for (int64_t i = 0; i < kBatch; i++)
      for (const auto& [name, want] : m.predict(alone[static_cast<size_t>(i)]))
        EXPECT_LE(difference(FeatureValue(item(out.array(name), 1, i)),
                             FeatureValue(std::get<MultiArray>(want).converted(DataType::float32))),
                  c.tolerance())
            << name << " of item " << i;
  }
}

/// All other legacy layers: the items of a batch give the same results as alone, and so do the steps of a sequence
/// unless the layer mixes them. Leading ones change nothing.
TEST(Rank5, LayersComputeEachItem) {
  size_t compared = 0;
  for (const Case& c : cases({"activations", "convolutions", "elementwise", "images", "normalizations", "poolings",
                              "products", "shapes"})) {
    SCOPED_TRACE(c.name);
    Model m = c.model();
    const bool exact = c.name.ends_with("_exact") || c.name.ends_with("_nd") || c.name == "layer_normalization" ||
                       c.name.starts_with("batched_mat_mul");
    if (exact) continue;  // these use the mapping without rank 5
    // The regions of crop_resize become the steps of its output.
    const bool mixes_steps = c.name == "sequence_concat" || c.name == "sequence_repeat" ||
                             c.name.ends_with("_sequence") || c.name == "crop_resize";
    Features plain, wide;
    for (const auto& [name, v] : c.data.at("inputs").items()) {
      plain[name] = array(v);
      wide[name] = reshaped(array(v), five(v.at("shape")));
    }
    EXPECT_TRUE(identical(m.predict(wide), m.predict(plain)));
    for (auto [steps, batch] : {std::array<int64_t, 2>{3, 1}, {1, 3}, {2, 2}}) {
      SCOPED_TRACE(std::to_string(steps) + " steps of a batch of " + std::to_string(batch));
      if (steps > 1 && mixes_steps && c.name != "reshape_sequence") continue;
      Features together;
      std::vector<Features> alone(static_cast<size_t>(steps * batch));
      uint64_t seed = 0;
      for (const auto& [name, v] : c.data.at("inputs").items()) {
        Ints shape = five(v.at("shape"));
        const size_t n = static_cast<size_t>(array(v).count());
        std::vector<float> all;
        for (size_t i = 0; i < alone.size(); i++) {
          // Indices of an embedding stay as they are; the others vary, and stay positive for logarithms.
          std::vector<float> one = v.at("data").get<std::vector<float>>();
          if (c.name != "embedding")
            for (size_t k = 0; k < n; k++) one[k] *= 0.5f + 0.4f * static_cast<float>((k * 7 + seed + i) % 3);
          all.insert(all.end(), one.begin(), one.end());
          alone[i][name] = MultiArray::of(one, v.at("shape").get<Ints>());
        }
        seed++;
        shape[0] = steps;
        shape[1] = batch;
        together[name] = MultiArray::of(all, shape);
      }
      if (c.name == "reshape_sequence") {
        const char* why =
            batch == 1 ? "expected a shape of 72 elements" : "a new sequence length for more than one batch";
        expect_refused({why}, [&] { m.predict(together); });
        continue;
      }
      Features out = m.predict(together);
      for (size_t i = 0; i < alone.size(); i++)
        for (const auto& [name, want] : m.predict(alone[i])) {
          const auto& w = std::get<MultiArray>(want);
          MultiArray got = out.array(name);
          ASSERT_EQ(got.shape().size(), 5u) << name;
          // A layer whose output does not depend on its inputs has one item.
          if (const auto s = static_cast<int64_t>(i) / batch; steps > 1 && got.shape()[0] > 1) got = item(got, 0, s);
          if (const auto b = static_cast<int64_t>(i) % batch; batch > 1 && got.shape()[1] > 1) got = item(got, 1, b);
          MultiArray expected =
              reshaped(w.converted(DataType::float32), w.shape().size() == 5 ? w.shape() : five(w.shape()));
          EXPECT_LE(difference(FeatureValue(got), FeatureValue(expected)), c.tolerance()) << name << " of item " << i;
          compared++;
        }
    }
  }
  EXPECT_GT(compared, 800u);
}

/// The output has the described shape if the element counts match, else rank 5.
TEST(Rank5, ShapesOfOutputs) {
  Model conv = case_of("convolutions", "conv_declared_shape").model();
  auto shape = [&](Ints in) { return conv.predict({{"x", MultiArray(DataType::float32, in)}}).array("y").shape(); };
  EXPECT_EQ(shape({4, 7, 6}), (Ints{6, 5, 5}));
  EXPECT_EQ(shape({1, 1, 4, 7, 6}), (Ints{6, 5, 5}));
  EXPECT_EQ(shape({1, 2, 4, 7, 6}), (Ints{1, 2, 6, 5, 5}));
  EXPECT_EQ(shape({3, 1, 4, 7, 6}), (Ints{3, 1, 6, 5, 5}));
  EXPECT_EQ(shape({3, 2, 4, 7, 6}), (Ints{3, 2, 6, 5, 5}));
  EXPECT_EQ(conv.function().inputs[0].array.shape, (Ints{4, 7, 6}));

  Features out{{"y", MultiArray(DataType::float64, {2, 1, 6, 5, 5})}};
  const void* memory = std::get<MultiArray>(out.at("y")).data();
  conv.predict({{"x", MultiArray(DataType::float32, {2, 1, 4, 7, 6})}}, out, {});
  EXPECT_EQ(out.array("y").data(), memory);
}

TEST(Rank5, WrongShapesAreRefused) {
  Model lstm = case_of("recurrent", "lstm_no_state").model();
  for (const Ints& shape : {Ints{4},
                            {5, 3},
                            {5, 1, 4},
                            {3, 1, 1},
                            {5, 1, 3, 1},
                            {5, 1, 3, 2, 1},
                            {5, 1, 1, 1, 3},
                            {0, 1, 3},
                            {5, 0, 3, 1, 1},
                            {1, 1, 1, 1, 1, 3}})
    expect_refused({"'x'", "expected", "3", "got"}, [&] {
      lstm.predict({{"x", MultiArray(DataType::float32, shape)}});
    });
  expect_refused(
      {"input 'x': expected MultiArray (Double 3), Seq x Batch x C or Seq x Batch x C x 1 x 1, got shape 5 x 4"}, [&] {
        lstm.predict({{"x", MultiArray(DataType::float32, {5, 4})}});
      });
  Model conv = case_of("convolutions", "conv_valid").model();
  for (const Ints& shape : {Ints{7, 6}, {4, 7, 7}, {1, 4, 7, 6}, {2, 1, 7, 4, 6}, {2, 1, 168}})
    expect_refused({"'x'", "expected", "4 x 7 x 6", "got"}, [&] {
      conv.predict({{"x", MultiArray(DataType::float32, shape)}});
    });
  Model exact = case_of("products", "inner_product_exact").model();
  expect_refused({"'x'", "expected", "2 x 4 x 12", "got"}, [&] {
    exact.predict({{"x", MultiArray(DataType::float32, {1, 1, 2, 4, 12})}});
  });
  // A state of another batch, and a classifier, which names one class.
  Model states = case_of("recurrent", "simple_rnn").model();
  expect_refused({"expected", "got"}, [&] {
    states.predict({{"x", MultiArray(DataType::float32, {5, 2, 3})}, {"h", MultiArray(DataType::float32, {1, 3, 4})}});
  });
  expect_refused({"expected", "got"}, [&] {
    states.predict({{"x", MultiArray(DataType::float32, {5, 1, 3})}, {"h", MultiArray(DataType::float32, {2, 1, 4})}});
  });
  // More than fits in memory.
  float one = 0;
  ModelConfiguration bounded;
  bounded.memory_budget = size_t{1} << 30;
  Model small = case_of("recurrent", "lstm_no_state").model(bounded);
  expect_refused({"bytes"}, [&] {
    small.predict({{"x", MultiArray(&one, DataType::float32, {int64_t{1} << 40, 1, 3})}});
  });
  Model classifier = case_of("classifier", "classifier").model();
  expect_refused({"expected", "got"}, [&] { classifier.predict({{"x", MultiArray(DataType::float32, {2, 1, 3})}}); });
}

/// Several threads pass the first inputs of rank 5 at the same time.
TEST(Rank5, ThreadsShareWhatIsMade) {
  const Case c = case_of("recurrent", "bidirectional_lstm");
  Model m = c.model();
  Features in;
  for (const auto& [name, v] : c.data.at("inputs").items()) in[name] = array(v);
  std::vector<std::future<Features>> all;
  for (int i = 0; i < 8; i++) all.push_back(m.predict_async(in));
  const Features expected = m.predict(in);
  for (auto& f : all) EXPECT_TRUE(identical(f.get(), expected));
}

TEST(Rank5, IsExplained) {
  const Case c = case_of("recurrent", "lstm_no_state");
  ComputePlan plan = c.model().compute_plan({{"x", MultiArray(DataType::float32, {5, 2, 3})}}, true);
  bool found = false;
  for (const auto& op : plan.operations) found |= op.type == "lstm" && op.measured_seconds >= 0;
  EXPECT_TRUE(found);
}

/// The decoder gives the same results for a whole text as step by step, with and without given states.
TEST(Rank5, DecoderReadsWholeTexts) {
  MOKA_NEEDS_MODELS(folder);
  constexpr int64_t kSteps = 12, kBatch = 2, kLetters = 87, kHidden = 256;
  for (const char* device : {"", "reference"}) {
    SCOPED_TRACE(device);
    ModelConfiguration configuration;
    configuration.device = device;
    Model m = Model::load((*folder / "seq2seq_lstm/Es2EnCharDecoder.mlmodel").string(), configuration);
    for (bool given : {false, true}) {
      MultiArray text(DataType::float64, {kSteps, kBatch, kLetters, 1, 1});
      MultiArray h(DataType::float64, {1, kBatch, kHidden, 1, 1}), cell = h.converted(DataType::float64);
      auto fill = [&](MultiArray& a, uint64_t seed) {
        std::vector<float> v = draw(seed, static_cast<size_t>(a.count()), -0.5, 0.5);
        for (size_t i = 0; i < v.size(); i++) a.as<double>()[i] = static_cast<double>(v[i]);
      };
      if (given) {
        fill(h, 1);
        fill(cell, 2);
      }
      for (int64_t s = 0; s < kSteps; s++)
        for (int64_t b = 0; b < kBatch; b++)
          text.as<double>()[static_cast<size_t>((s * kBatch + b) * kLetters + (5 * s + 31 * b) % kLetters)] = 1;
      double worst = 0;
      auto compare = [&](const MultiArray& whole, int64_t at, const MultiArray& step) {
        for (int64_t i = 0; i < step.count(); i++) worst = std::max(worst, std::abs(whole.at(at + i) - step.at(i)));
      };
      auto part = [](const MultiArray& a, int64_t at, int64_t n) {
        MultiArray p(DataType::float64, {n});
        for (int64_t i = 0; i < n; i++) p.as<double>()[static_cast<size_t>(i)] = a.at(at + i);
        return p;
      };
      Features in{{"encodedChar", text}};
      if (given) {
        in["decoder_lstm_h_in"] = h;
        in["decoder_lstm_c_in"] = cell;
      }
      Features all = m.predict(in);
      ASSERT_EQ(all.array("nextCharProbs").shape(), (Ints{kSteps, kBatch, kLetters, 1, 1}));
      ASSERT_EQ(all.array("decoder_lstm_h_out").shape(), (Ints{1, kBatch, kHidden, 1, 1}));
      for (int64_t b = 0; b < kBatch; b++) {
        MultiArray line(DataType::float64, {kSteps, 1, kLetters});
        Features state, single{{"encodedChar", line}};
        if (given) {
          single["decoder_lstm_h_in"] = part(h, b * kHidden, kHidden);
          single["decoder_lstm_c_in"] = part(cell, b * kHidden, kHidden);
        }
        for (int64_t s = 0; s < kSteps; s++) {
          const MultiArray letter = part(text, (s * kBatch + b) * kLetters, kLetters);
          for (int64_t i = 0; i < kLetters; i++)
            line.as<double>()[static_cast<size_t>(s * kLetters + i)] = letter.at(i);
          Features step{{"encodedChar", letter}};
          if (s > 0) {
            step["decoder_lstm_h_in"] = state.at("decoder_lstm_h_out");
            step["decoder_lstm_c_in"] = state.at("decoder_lstm_c_out");
          } else if (given) {
            step["decoder_lstm_h_in"] = single.at("decoder_lstm_h_in");
            step["decoder_lstm_c_in"] = single.at("decoder_lstm_c_in");
          }
          state = m.predict(step);
          compare(all.array("nextCharProbs"), (s * kBatch + b) * kLetters, state.array("nextCharProbs"));
        }
        compare(all.array("decoder_lstm_h_out"), b * kHidden, state.array("decoder_lstm_h_out"));
        compare(all.array("decoder_lstm_c_out"), b * kHidden, state.array("decoder_lstm_c_out"));
        // One text: the states have the described shape.
        Features one = m.predict(single);
        EXPECT_EQ(one.array("decoder_lstm_h_out").shape(), (Ints{kHidden}));
        compare(one.array("decoder_lstm_h_out"), 0, state.array("decoder_lstm_h_out"));
        compare(one.array("nextCharProbs"), (kSteps - 1) * kLetters, state.array("nextCharProbs"));
      }
      std::cout << "  " << (*device != 0 ? device : "usual devices") << (given ? ", states given" : "")
                << ": largest difference " << worst << "\n";
      // Between steps, states are rounded to float32 and back; inside, the reference keeps double.
      EXPECT_LE(worst, 1e-6);
    }
  }
}

}  // namespace
}  // namespace moka::test
