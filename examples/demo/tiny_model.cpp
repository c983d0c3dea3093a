// SPDX-License-Identifier: Apache-2.0
#include "demo/tiny_model.h"

#include <cmath>
#include <numbers>

#include "demo/notes.h"
#include "moka/program.h"

namespace demo {

namespace {

constexpr int kPitches = 88;
constexpr int kTaps = 4096;

/// Cosine (row p) and sine (row 88 + p) of each pitch under a Hann window, [176, 1, kTaps]. Low pitches use all taps,
/// high ones fewer, so that their starts are sharp.
moka::MultiArray filters() {
  std::vector<float> w(2 * kPitches * kTaps);
  for (int p = 0; p < kPitches; p++) {
    double hertz = 440.0 * std::exp2((p + static_cast<int>(kLowestPitch) - 69) / 12.0);
    double length = std::min<double>(kTaps, 60.0 * kSampleRate / hertz);
    for (int t = 0; t < kTaps; t++) {
      double at = t - kTaps / 2;
      if (std::fabs(at) > length / 2) continue;
      double hann = 0.5 + 0.5 * std::cos(2 * std::numbers::pi * at / length);
      double phase = 2 * std::numbers::pi * hertz * at / kSampleRate;
      w[static_cast<size_t>(p * kTaps + t)] = static_cast<float>(hann * std::cos(phase) / length);
      w[static_cast<size_t>((kPitches + p) * kTaps + t)] = static_cast<float>(hann * std::sin(phase) / length);
    }
  }
  return moka::MultiArray::of(w, {2 * kPitches, 1, kTaps});
}

}  // namespace

moka::ProgramBuilder tiny_model() {
  using Args = std::vector<moka::ProgramBuilder::Argument>;
  moka::ProgramBuilder b("ios15");
  auto sound = b.input("input_2", moka::DataType::float32, {1, static_cast<int64_t>(kWindow), 1});
  auto rows = b.op("transpose", Args{{"x", sound}, {"perm", std::vector<int>{0, 2, 1}}});
  auto bank = b.op("conv",
                   Args{{"x", rows},
                        {"weight", filters()},
                        {"strides", std::vector<int>{static_cast<int>(kHop)}},
                        {"pad_type", "custom"},
                        {"pad", std::vector<int>{kTaps / 2, kTaps / 2}}},
                   "bank");
  auto square = b.op("mul", Args{{"x", bank}, {"y", bank}});
  auto parts = b.ops("split", Args{{"x", square}, {"num_splits", 2}, {"axis", 1}});
  auto power = b.op("add", Args{{"x", parts[0]}, {"y", parts[1]}}, "power");
  // A pitch counts when it exceeds its neighbors and is not the second or third partial of a lower pitch.
  auto around = b.op("avg_pool", Args{{"x", b.op("transpose", Args{{"x", power}, {"perm", std::vector<int>{0, 2, 1}}})},
                                      {"kernel_sizes", std::vector<int>{13}},
                                      {"strides", std::vector<int>{1}},
                                      {"pad_type", "same"},
                                      {"exclude_padding_from_average", true}});
  auto frames = b.op("transpose", Args{{"x", power}, {"perm", std::vector<int>{0, 2, 1}}});
  auto floor = b.op("add", Args{{"x", b.op("mul", Args{{"x", around}, {"y", 3.0f}})}, {"y", 2e-5f}});
  auto ratio = b.op("real_div", Args{{"x", frames}, {"y", floor}});
  auto shifted = [&](int by) {
    auto low = b.op(
        "slice_by_index",
        Args{{"x", frames}, {"begin", std::vector<int>{0, 0, 0}}, {"end", std::vector<int>{1, 173, kPitches - by}}});
    return b.op(
        "pad",
        Args{{"x", low}, {"pad", std::vector<int>{0, 0, 0, 0, by, 0}}, {"mode", "constant"}, {"constant_val", 0.0f}});
  };
  auto below = b.op("add", Args{{"x", shifted(12)}, {"y", shifted(19)}});
  auto rival = b.op("add", Args{{"x", b.op("mul", Args{{"x", below}, {"y", 10.0f}})}, {"y", 1e-9f}});
  auto above = b.op("real_div", Args{{"x", frames}, {"y", b.op("add", Args{{"x", frames}, {"y", rival}})}});
  auto shown =
      b.op("clip", Args{{"x", b.op("mul", Args{{"x", ratio}, {"y", above}})}, {"alpha", 0.0f}, {"beta", 1.0f}});
  auto note =
      b.op("slice_by_index",
           Args{{"x", shown}, {"begin", std::vector<int>{0, 0, 0}}, {"end", std::vector<int>{1, 172, kPitches}}},
           "Identity_1");
  // A rise over four frames.
  auto before = b.op("pad", Args{{"x", b.op("slice_by_index", Args{{"x", note},
                                                                   {"begin", std::vector<int>{0, 0, 0}},
                                                                   {"end", std::vector<int>{1, 168, kPitches}}})},
                                 {"pad", std::vector<int>{0, 0, 4, 0, 0, 0}},
                                 {"mode", "constant"},
                                 {"constant_val", 0.0f}});
  auto onset = b.op("relu", Args{{"x", b.op("sub", Args{{"x", note}, {"y", before}})}}, "Identity_2");
  b.output(note);
  b.output(onset);
  return b;
}

}  // namespace demo
