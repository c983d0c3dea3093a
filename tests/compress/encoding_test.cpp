// SPDX-License-Identifier: Apache-2.0
#include "compress/encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/half.h"
#include "base64.h"
#include "compress/blocks.h"
#include "compress/kmeans.h"

/// Against what coremltools.optimize.coreml makes of the same weights (tests/golden/compressed_truth.py).
namespace moka::compress {
namespace {

template <class T>
std::vector<T> from_base64(const std::string& text) {
  const std::string bytes = test::base64(text);
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

struct Golden {
  nlohmann::json all;
  std::map<std::string, std::vector<float>> values;

  Golden() {
    std::ifstream in(std::string(MOKA_GOLDEN) + "/compressed/weights.json");
    all = nlohmann::json::parse(in);
    for (const auto& [name, w] : all["weights"].items()) values[name] = from_base64<float>(w["values"]);
  }
  Weight weight(const nlohmann::json& c) const {
    const auto& w = all["weights"][c["weight"].get<std::string>()];
    return {w["shape"], w["half"], values.at(c["weight"])};
  }
};

const Part& part(const Encoding& encoding, std::string_view name) {
  for (const ConstexprOp& op : encoding.operations)
    for (const Parameter& p : op.parameters)
      if (p.name == name) return std::get<Part>(p.value);
  throw std::runtime_error("no part " + std::string(name));
}

std::vector<int16_t> codes_of(const Part& p, unsigned bits, bool is_signed, size_t count) {
  std::vector<int16_t> out;
  for (size_t i = 0; i < count; ++i) {
    const auto code = static_cast<int>(unpack(p.data.data(), bits, i));
    const int sign = 1 << (bits - 1);
    out.push_back(static_cast<int16_t>(is_signed ? (code ^ sign) - sign : code));
  }
  return out;
}

double squared_error(const Encoding& encoding, std::span<const float> values) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    sum +=
        (static_cast<double>(encoding.decoded[i]) - values[i]) * (static_cast<double>(encoding.decoded[i]) - values[i]);
  return sum;
}

TEST(Compress, LinearAsCoremltoolsDoes) {
  const Golden golden;
  size_t cases = 0;
  for (const auto& c : golden.all["cases"]) {
    if (c["kind"] != "linear") continue;
    const Weight weight = golden.weight(c);
    const std::string granularity = c["granularity"];
    const Linear linear{c["bits"], c["symmetric"], c["signed"],
                        granularity == "tensor"    ? Granularity::tensor
                        : granularity == "channel" ? Granularity::channel
                                                   : Granularity::block,
                        8};
    const std::string where = c.dump().substr(0, 20) + " " + c["weight"].get<std::string>() + " " + granularity;
    ASSERT_EQ(refusal(weight, linear, Form::ios18), "") << where;
    const Encoding made = encode(weight, linear, Form::ios18);
    EXPECT_EQ(part(made, "scale").shape, c["shape"].get<Shape>()) << where;
    const auto scale = from_base64<float>(c["scale"]);
    const auto expected = from_base64<int16_t>(c["codes"]);
    const auto codes = codes_of(part(made, "data"), linear.bits, linear.is_signed, expected.size());
    // coremltools divides halves in half precision, and leaves a block of zeros without a scale.
    size_t different = 0;
    const size_t per_scale = expected.size() / scale.size();
    for (size_t i = 0; i < codes.size(); ++i) {
      const bool is_zero = weight.values[i] == 0 && c["weight"] == "linear" && i / 32 == 3;
      if (is_zero) continue;
      different += codes[i] != expected[i];
      EXPECT_LE(std::abs(codes[i] - expected[i]), weight.half ? 2 : 0) << where << " at " << i;
    }
    EXPECT_LE(different, codes.size() / 10) << where << " " << per_scale;
    ++cases;
  }
  EXPECT_EQ(cases, 48u);
}

TEST(Compress, LinearErrorsAreNoLargerThanHalfAStep) {
  const Golden golden;
  for (const auto& c : golden.all["cases"]) {
    if (c["kind"] != "linear") continue;
    const Weight weight = golden.weight(c);
    const Linear linear{c["bits"], c["symmetric"], c["signed"], Granularity::channel, 8};
    const Encoding made = encode(weight, linear, Form::ios18);
    const size_t row = weight.values.size() / static_cast<size_t>(weight.shape[0]);
    for (size_t r = 0; r < static_cast<size_t>(weight.shape[0]); ++r) {
      float most = 0, worst = 0;
      for (size_t i = r * row; i < (r + 1) * row; ++i) {
        most = std::max(most, std::abs(weight.values[i]));
        worst = std::max(worst, std::abs(weight.values[i] - made.decoded[i]));
      }
      // One step more where the zero point was rounded.
      const float step = 2 * most / static_cast<float>((1 << linear.bits) - 2);
      // Scales and weights that are halves are rounded, too.
      const float rounding = weight.half ? most / 1024 : 0;
      EXPECT_LE(worst, step * (linear.symmetric ? 0.5F : 1.0F) * 1.001F + rounding) << c["weight"] << " row " << r;
    }
  }
}

TEST(Compress, PalettesAreNoWorseThanCoremltools) {
  const Golden golden;
  size_t cases = 0;
  for (const auto& c : golden.all["cases"]) {
    if (c["kind"] != "palette") continue;
    const Weight weight = golden.weight(c);
    Palette palette;
    palette.bits = c["bits"];
    palette.vector = c["vector"];
    if (const int64_t group = c["group"]; group > 0) {
      palette.granularity = Granularity::group;
      palette.group = group;
    }
    const std::string where = c.dump();
    ASSERT_EQ(refusal(weight, palette, Form::ios18), "") << where;
    const Encoding made = encode(weight, palette, Form::ios18);
    EXPECT_EQ(part(made, "lut").shape, c["lut"].get<Shape>()) << where;
    EXPECT_EQ(part(made, "indices").shape, c["indices"].get<Shape>()) << where;
    // Clusters of vectors have no known optimum.
    const double allowed = palette.vector > 1 ? 1.002 : 1.0005;
    EXPECT_LE(squared_error(made, weight.values), c["error"].get<double>() * allowed + 1e-9) << where;
    ++cases;
  }
  EXPECT_GE(cases, 60u);
}

TEST(Compress, UniformAndUniquePalettes) {
  const Golden golden;
  for (const auto& c : golden.all["cases"]) {
    if (c["kind"] != "uniform" && c["kind"] != "unique") continue;
    const Weight weight = golden.weight(c);
    Palette palette;
    palette.mode = c["kind"] == "unique" ? Palette::Mode::unique : Palette::Mode::uniform;
    const Encoding made = encode(weight, palette, Form::ios18);
    if (c["kind"] == "unique") {
      EXPECT_EQ(squared_error(made, weight.values), 0);
      palette.bits = 3;
      EXPECT_NE(refusal(weight, palette, Form::ios18), "");
      continue;
    }
    const auto values = from_base64<float>(c["values"]);
    const auto* lut = reinterpret_cast<const float*>(part(made, "lut").data.data());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(lut[i], values[i], 1e-6);
  }
}

TEST(Compress, PrunesTheElementsThatCoremltoolsPrunes) {
  const Golden golden;
  size_t cases = 0;
  for (const auto& c : golden.all["cases"]) {
    if (c["kind"] != "prune") continue;
    const Weight weight = golden.weight(c);
    Prune prune{c.value("sparsity", 0.0), c.value("threshold", -1.0),   c.value("n", int64_t{0}),
                c.value("m", int64_t{0}), c.value("block", int64_t{0}), 0};
    ASSERT_EQ(refusal(weight, prune, Form::ios18), "");
    const auto mask = from_base64<uint8_t>(c["mask"]);
    const std::vector<bool> kept = kept_by(weight, prune);
    ASSERT_EQ(kept.size(), mask.size());
    size_t different = 0;
    for (size_t i = 0; i < mask.size(); ++i) different += kept[i] != (mask[i] != 0);
    EXPECT_EQ(different, 0u) << c.dump().substr(0, 80);
    const Encoding made = encode_sparse(weight, kept, Form::ios18);
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(made.decoded[i], kept[i] ? weight.values[i] : 0);
    ++cases;
  }
  EXPECT_GE(cases, 25u);
}

TEST(Compress, KMeansIsOptimalForFewValues) {
  // The sum of squares of every division of ten values into three.
  const std::vector<float> values{-3, -2.5F, -2.4F, 0, 0.1F, 0.3F, 1, 4, 4.5F, 9};
  double best = INFINITY;
  auto cost = [&](size_t begin, size_t end) {
    double mean = 0, sum = 0;
    for (size_t i = begin; i < end; ++i) mean += values[i] / static_cast<double>(end - begin);
    for (size_t i = begin; i < end; ++i) sum += (values[i] - mean) * (values[i] - mean);
    return sum;
  };
  for (size_t a = 1; a < values.size(); ++a)
    for (size_t b = a + 1; b < values.size(); ++b)
      best = std::min(best, cost(0, a) + cost(a, b) + cost(b, values.size()));
  const std::vector<float> centers = centers_of(values, 3);
  ASSERT_EQ(centers.size(), 3u);
  double got = 0;
  for (const float v : values) got += (v - centers[nearest(centers, v)]) * (v - centers[nearest(centers, v)]);
  EXPECT_NEAR(got, best, 1e-5);
}

TEST(Compress, PacksCodesOfAllWidths) {
  for (const unsigned bits : {1U, 2U, 3U, 4U, 6U, 8U}) {
    std::vector<uint8_t> codes;
    for (unsigned i = 0; i < 77; ++i) codes.push_back(static_cast<uint8_t>((i * 37) & ((1U << bits) - 1)));
    const Bytes packed = pack(codes, bits);
    EXPECT_EQ(packed.size(), (77 * bits + 7) / 8);
    for (size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(unpack(packed.data(), bits, i), codes[i]) << bits << " " << i;
  }
}

TEST(Compress, ScalesOfTheLeastNumbersStayFinite) {
  constexpr float most = std::numeric_limits<float>::max(), most_half = 65504;
  for (const bool half : {true, false})
    for (const unsigned bits : {4U, 8U})
      for (const bool symmetric : {true, false})
        for (const bool is_signed : {true, false})
          for (const float sign : {-1.0F, 1.0F}) {
            const float extreme = sign * (half ? most_half : most);
            std::vector<float> values(64, 0);
            for (size_t i = 0; i < values.size(); i += 3) values[i] = extreme;
            const Encoding made = encode(Weight{{8, 8}, half, values}, Linear{bits, symmetric, is_signed}, Form::ios18);
            for (size_t i = 0; i < values.size(); ++i)
              EXPECT_NEAR(made.decoded[i] / extreme, values[i] / extreme, 0.01)
                  << half << bits << symmetric << is_signed << " at " << i;
          }
  // The largest half whose product with 127 rounds to a finite half, by numpy.
  std::vector<float> mask(64, 0);
  mask[5] = -most_half;
  const Encoding made = encode(Weight{{8, 8}, true, mask}, Linear{8, true, true, Granularity::tensor}, Form::ios18);
  uint16_t scale = 0;
  std::memcpy(&scale, part(made, "scale").data.data(), sizeof scale);
  EXPECT_EQ(half::to_float(scale), 515.5F);
}

TEST(Compress, UniformPalettesOfTheWholeRange) {
  constexpr float most = std::numeric_limits<float>::max();
  std::vector<float> values(64, 0);
  values[3] = most;
  values[9] = -most;
  Palette palette;
  palette.mode = Palette::Mode::uniform;
  palette.bits = 2;
  const Encoding made = encode(Weight{{8, 8}, false, values}, palette, Form::ios18);
  EXPECT_EQ(made.decoded[3], most);
  EXPECT_EQ(made.decoded[9], -most);
  EXPECT_NEAR(std::abs(made.decoded[0]) / most, 1.0 / 3, 1e-6);
}

TEST(Compress, RefusesWhatCannotBeMade) {
  std::vector<float> values(64, 1);
  const Weight weight{{8, 8}, false, values};
  EXPECT_NE(refusal(weight, Linear{4}, Form::ios16), "");
  EXPECT_NE(refusal(weight, Linear{8, true, true, Granularity::block, 3}, Form::ios18), "");
  EXPECT_NE(refusal(weight, Palette{3}, Form::ios16), "");
  Palette grouped;
  grouped.granularity = Granularity::group;
  grouped.group = 3;
  EXPECT_NE(refusal(weight, grouped, Form::ios18), "");
  EXPECT_NE(refusal(weight, Prune{0, -1, 2, 5}, Form::ios18), "");
  EXPECT_EQ(refusal(values), "");
  for (const float value : {INFINITY, -INFINITY, NAN}) {
    values[3] = value;
    EXPECT_NE(refusal(values), "");
  }
}

}  // namespace
}  // namespace moka::compress
