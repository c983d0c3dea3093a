// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "compress/blocks.h"
#include "compress/kmeans.h"
#include "compress/network.h"

namespace moka::compress {
namespace {

/// Packs codes from the highest bit of a byte down.
Bytes pack_from_the_top(const std::vector<uint8_t>& codes, unsigned bits) {
  constexpr unsigned byte = 8;
  auto out = std::make_shared<std::vector<std::byte>>((codes.size() * bits + byte - 1) / byte);
  unsigned held = 0, count = 0;
  size_t at = 0;
  for (const uint8_t code : codes) {
    held = held << bits | (code & ((1U << bits) - 1));
    for (count += bits; count >= byte; count -= byte) (*out)[at++] = static_cast<std::byte>(held >> (count - byte));
  }
  if (count > 0) (*out)[at] = static_cast<std::byte>(held << (byte - count));
  return {*out, out};
}

/// Whether the largest quantized value times the scale is finite in float32.
bool fits(std::span<const float> values, const Linear& linear) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double least = *low, most = *high, steps = (1U << linear.bits) - 1;
  const double scale =
      linear.symmetric ? 2 * std::max(std::abs(least), std::abs(most)) / (steps - 1) : (most - least) / steps;
  return steps * scale <= std::numeric_limits<float>::max();
}

NetworkEncoding encode_linear(const NetworkWeight& weight, std::span<const float> values, const Linear& linear) {
  Blocks blocks{weight.shape, Shape(weight.shape.size(), 1)};
  if (linear.granularity != Granularity::tensor)
    blocks.counts[static_cast<size_t>(weight.channel_axis)] = weight.shape[static_cast<size_t>(weight.channel_axis)];
  const auto count = static_cast<size_t>(blocks.total());
  std::vector<float> least(count, INFINITY), scale(count), most(count, -INFINITY);
  blocks.each_run([&](int64_t begin, int64_t length, int64_t block) {
    const auto [low, high] = std::minmax_element(values.begin() + begin, values.begin() + begin + length);
    const auto b = static_cast<size_t>(block);
    least[b] = std::min(least[b], *low);
    most[b] = std::max(most[b], *high);
  });
  const auto steps = static_cast<float>((1U << linear.bits) - 1);
  NetworkEncoding out;
  for (size_t b = 0; b < count; ++b) {
    if (linear.symmetric) {
      const float half = (steps + 1) / 2;
      scale[b] = std::max(std::abs(least[b]), std::abs(most[b])) / (half - 1);
      least[b] = -half * scale[b];
    } else {
      scale[b] = (most[b] - least[b]) / steps;
      // It may have been rounded up.
      while (!std::isfinite(steps * scale[b])) scale[b] = std::nextafter(scale[b], 0.0F);
    }
    out.scale.push_back(scale[b]);
    out.bias.push_back(least[b]);
  }
  std::vector<uint8_t> codes(values.size());
  out.decoded.resize(values.size());
  blocks.each_run([&](int64_t begin, int64_t length, int64_t block) {
    const auto b = static_cast<size_t>(block);
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(begin + length); ++i) {
      const float above = values[i] - least[b];
      const float code = scale[b] == 0 ? 0 : linear.symmetric ? above / scale[b] : above * (1 / scale[b]);
      codes[i] = static_cast<uint8_t>(std::clamp(std::nearbyint(code), 0.0F, steps));
      out.decoded[i] = static_cast<float>(codes[i]) * out.scale[b] + out.bias[b];
    }
  });
  out.bits = linear.bits;
  out.data = pack_from_the_top(codes, out.bits);
  return out;
}

NetworkEncoding encode_palette(std::span<const float> values, const Palette& palette) {
  const size_t entries = size_t{1} << palette.bits;
  NetworkEncoding out;
  if (palette.mode == Palette::Mode::uniform) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double step = (static_cast<double>(*high) - *low) / static_cast<double>(entries - 1);
    for (size_t i = 0; i < entries; ++i) out.table.push_back(static_cast<float>(*low + step * static_cast<double>(i)));
  } else {
    out.table = centers_of(values, entries);
  }
  std::vector<uint8_t> codes(values.size());
  out.decoded.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    codes[i] = nearest(out.table, values[i]);
    out.decoded[i] = out.table[codes[i]];
  }
  out.table.resize(entries);
  out.bits = palette.bits;
  out.data = pack_from_the_top(codes, out.bits);
  return out;
}

NetworkEncoding encode_halves(std::span<const float> values) {
  constexpr unsigned bits = 16;
  NetworkEncoding out;
  out.bits = bits;
  out.data = store(values, true);
  for (const float v : values) out.decoded.push_back(rounded(v, true));
  return out;
}

}  // namespace

std::string refusal(const NetworkWeight& weight, std::span<const float> values, const Recipe& recipe) {
  constexpr unsigned most = 8;
  if (recipe.prune) return "neural networks have no sparse weights";
  if (std::string words = refusal(values); !words.empty()) return words;
  if (const auto* linear = std::get_if<Linear>(&recipe.form)) {
    if (linear->bits < 1 || linear->bits > most) return cat("expected 1 to 8 bits, got ", linear->bits);
    if (linear->symmetric && linear->bits != most)
      return "integers of a neural network with less than 8 bits are asymmetric";
    if (!fits(values, *linear)) return "its values are further apart than floats can hold";
    if (linear->granularity == Granularity::block) return "blocks need an ML program for iOS 18";
  }
  if (const auto* palette = std::get_if<Palette>(&recipe.form)) {
    if (palette->bits < 1 || palette->bits > most) return cat("expected 1 to 8 bits, got ", palette->bits);
    if (palette->granularity == Granularity::group || palette->vector > 1 || palette->scales)
      return "groups, vectors and scales of palettes need an ML program for iOS 18";
    if (palette->mode == Palette::Mode::unique &&
        centers_of(values, (size_t{1} << palette->bits) + 1).size() > size_t{1} << palette->bits)
      return cat("it has more than ", size_t{1} << palette->bits, " different values");
  }
  if (std::holds_alternative<Half>(recipe.form)) {
    if (weight.half) return "it has halves";
    constexpr float greatest = 65504;
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::abs(v) <= greatest; }))
      return "it has values that halves cannot hold";
  }
  return "";
}

NetworkEncoding encode(const NetworkWeight& weight, std::span<const float> values, const Recipe& recipe) {
  NetworkEncoding out;
  if (const auto* linear = std::get_if<Linear>(&recipe.form))
    out = encode_linear(weight, values, *linear);
  else if (const auto* palette = std::get_if<Palette>(&recipe.form))
    out = encode_palette(values, *palette);
  else
    out = encode_halves(values);
  out.bytes = out.data.size() + (out.scale.size() + out.bias.size() + out.table.size()) * sizeof(float);
  return out;
}

}  // namespace moka::compress
