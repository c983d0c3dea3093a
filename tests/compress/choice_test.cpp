// SPDX-License-Identifier: Apache-2.0
#include "compress/choice.h"

#include <gtest/gtest.h>

#include <random>

namespace moka::compress {
namespace {

/// All choices of a few weights, tried one after the other.
template <class Visit>
void each_choice(const Options& options, const Visit& visit) {
  std::vector<size_t> at(options.size());
  for (;;) {
    Choice c{at};
    for (size_t i = 0; i < at.size(); ++i) {
      c.bytes += options[i][at[i]].bytes;
      c.noise += options[i][at[i]].noise;
    }
    visit(c);
    size_t i = 0;
    while (i < at.size() && ++at[i] == options[i].size()) at[i++] = 0;
    if (i == at.size()) return;
  }
}

Options random_options(std::mt19937& random, size_t weights) {
  Options out(weights);
  for (auto& list : out) {
    const size_t bytes = 100 + random() % 10000;
    const double sensitivity = std::exp(std::uniform_real_distribution<>(-8, 0)(random));
    list = {{bytes, 0}};
    for (const unsigned bits : {8U, 6U, 4U, 2U, 1U})
      list.push_back({bytes * bits / 16 + random() % 40, sensitivity * std::pow(4.0, -static_cast<double>(bits))});
  }
  return out;
}

TEST(Choice, KeepsToTheLimitsAndIsNearTheBestOfAllChoices) {
  std::mt19937 random(7);
  double bytes_ratio = 0, noise_ratio = 0;
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    const Options options = random_options(random, 5);
    const std::vector<Choice> curve = curve_of(options);
    const Choice& middle = curve[curve.size() / 2];
    const double noise = middle.noise * 1.1;
    const size_t bytes = middle.bytes + 50;
    size_t fewest = SIZE_MAX;
    double least = INFINITY;
    each_choice(options, [&](const Choice& c) {
      if (c.noise <= noise) fewest = std::min(fewest, c.bytes);
      if (c.bytes <= bytes) least = std::min(least, c.noise);
    });
    const Choice by_noise = choose_by_noise(options, noise), by_bytes = choose_by_bytes(options, bytes);
    EXPECT_LE(by_noise.noise, noise);
    EXPECT_LE(by_bytes.bytes, bytes);
    bytes_ratio += static_cast<double>(by_noise.bytes) / static_cast<double>(fewest) / kRounds;
    noise_ratio += by_bytes.noise / least / kRounds;
  }
  EXPECT_LT(bytes_ratio, 1.05);
  EXPECT_LT(noise_ratio, 1.5);
}

TEST(Choice, CurveGoesFromTheLeastNoiseToTheFewestBytes) {
  std::mt19937 random(3);
  const Options options = random_options(random, 6);
  const std::vector<Choice> curve = curve_of(options);
  EXPECT_EQ(curve.front().noise, 0);
  size_t fewest = 0;
  for (const auto& list : options)
    fewest += std::min_element(list.begin(), list.end(), [](auto& a, auto& b) { return a.bytes < b.bytes; })->bytes;
  EXPECT_EQ(curve.back().bytes, fewest);
  double before = 0;
  for (size_t i = 1; i < curve.size(); ++i) {
    ASSERT_LT(curve[i].bytes, curve[i - 1].bytes);
    const double rate =
        (curve[i].noise - curve[i - 1].noise) / static_cast<double>(curve[i - 1].bytes - curve[i].bytes);
    EXPECT_GE(rate, before * (1 - 1e-9));
    before = rate;
  }
}

TEST(Choice, WhatCannotBeReachedGivesTheNearest) {
  const Options options{{{100, 0.5}, {50, 2}}, {{80, 0.25}}};
  EXPECT_EQ(choose_by_noise(options, 0.1).options, (std::vector<size_t>{0, 0}));
  EXPECT_EQ(choose_by_bytes(options, 10).options, (std::vector<size_t>{1, 0}));
  EXPECT_EQ(choose_by_bytes(options, 10).bytes, 130u);
}

}  // namespace
}  // namespace moka::compress
