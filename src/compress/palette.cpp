// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "compress/blocks.h"
#include "compress/kmeans.h"

namespace moka::compress {
namespace {

/// The palettes of a weight, one for each group of output channels, and the codes of its elements or vectors.
struct Palettes {
  Blocks groups;               ///< of elements
  size_t entries = 0;          ///< of one palette
  std::vector<float> values;   ///< groups x entries x vector
  std::vector<uint8_t> codes;  ///< in the order of the weight, where vectors count once
};

bool is_whole(int64_t size, int64_t part) { return part > 0 && size % part == 0; }

Shape code_shape(const Weight& weight, const Palette& palette) {
  Shape out = weight.shape;
  out[static_cast<size_t>(weight.output_axis)] /= palette.vector;
  return out;
}

/// The positions of elements: before, along and after the axis of output channels.
struct PaletteAxes {
  size_t before = 1, channels = 1, after = 1;
};
PaletteAxes palette_axes(const Weight& weight) {
  PaletteAxes out;
  for (size_t i = 0; i < weight.shape.size(); ++i) {
    const auto size = static_cast<size_t>(weight.shape[i]), axis = static_cast<size_t>(weight.output_axis);
    (i < axis ? out.before : i == axis ? out.channels : out.after) *= size;
  }
  return out;
}

/// A scale for each position across the output channels: the largest absolute value there.
std::vector<float> scales_of(const Weight& weight) {
  const PaletteAxes axes = palette_axes(weight);
  std::vector<float> out(axes.before * axes.after);
  for (size_t i = 0; i < weight.values.size(); ++i) {
    const size_t at = i / (axes.channels * axes.after) * axes.after + i % axes.after;
    out[at] = std::max(out[at], std::abs(weight.values[i]));
  }
  for (float& scale : out)
    if (scale == 0) scale = 1;
  return out;
}

/// A value between two others as numpy computes it, and in doubles where its floats overflow.
float between(float low, float high, size_t step, size_t last) {
  const float part = (high - low) * static_cast<float>(step);
  if (std::isfinite(part)) return low + part / static_cast<float>(last);
  const double share = static_cast<double>(step) / static_cast<double>(last);
  return static_cast<float>(low + (static_cast<double>(high) - low) * share);
}

std::vector<float> palette_of(std::span<const float> values, const Palette& palette) {
  const size_t entries = size_t{1} << palette.bits;
  if (palette.vector > 1) return vector_centers(values, static_cast<size_t>(palette.vector), entries);
  if (palette.mode != Palette::Mode::uniform) return centers_of(values, entries);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  std::vector<float> out;
  for (size_t i = 0; i < entries; ++i) out.push_back(between(*low, *high, i, entries - 1));
  return out;
}

Palettes palettes_of(const Weight& weight, std::span<const float> values, const Palette& palette,
                     const std::vector<bool>& kept) {
  const auto vector = static_cast<size_t>(palette.vector), axis = static_cast<size_t>(weight.output_axis);
  const PaletteAxes axes = palette_axes(weight);
  Palettes out{{weight.shape, Shape(weight.shape.size(), 1)}, size_t{1} << palette.bits, {}, {}};
  if (palette.granularity == Granularity::group) out.groups.counts[axis] = weight.shape[axis] / palette.group;
  const auto groups = static_cast<size_t>(out.groups.counts[axis]);
  const size_t channels = axes.channels / groups;
  out.values.resize(groups * out.entries * vector);
  out.codes.resize(values.size() / vector);
  in_parallel(groups, [&](size_t group) {
    // Vectors are runs of output channels.
    std::vector<float> own, trained;
    std::vector<size_t> places;
    for (size_t b = 0; b < axes.before; ++b)
      for (size_t c = group * channels; c < (group + 1) * channels; c += vector)
        for (size_t a = 0; a < axes.after; ++a) {
          places.push_back((b * (axes.channels / vector) + c / vector) * axes.after + a);
          bool used = kept.empty();
          for (size_t v = 0; v < vector; ++v) {
            const size_t at = (b * axes.channels + c + v) * axes.after + a;
            own.push_back(values[at]);
            used = used || kept[at];
          }
          if (used && !kept.empty())
            trained.insert(trained.end(), own.end() - static_cast<std::ptrdiff_t>(vector), own.end());
        }
    const std::span<const float> sample = trained.empty() ? std::span<const float>(own) : trained;
    std::vector<float> table = palette_of(sample, palette);
    for (float& value : table) value = rounded(value, weight.half);
    for (size_t i = 0; i < places.size(); ++i) {
      const std::span<const float> piece = std::span(own).subspan(i * vector, vector);
      out.codes[places[i]] = vector == 1 ? nearest(table, piece[0]) : nearest_vector(table, piece);
    }
    table.resize(out.entries * vector);
    std::copy(table.begin(), table.end(), out.values.begin() + static_cast<std::ptrdiff_t>(group * table.size()));
  });
  return out;
}

/// The elements that packed codes represent.
std::vector<float> decoded(const Weight& weight, const Palette& palette, const Palettes& made, const Bytes& packed,
                           std::span<const float> scales, const std::vector<bool>& kept) {
  const PaletteAxes axes = palette_axes(weight);
  const auto vector = static_cast<size_t>(palette.vector);
  const size_t channels = axes.channels / static_cast<size_t>(made.groups.total());
  std::vector<float> out(weight.values.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!kept.empty() && !kept[i]) continue;
    const size_t a = i % axes.after, c = i / axes.after % axes.channels, b = i / axes.after / axes.channels;
    const unsigned code =
        unpack(packed.data(), palette.bits, (b * (axes.channels / vector) + c / vector) * axes.after + a);
    const float value = made.values[(c / channels * made.entries + code) * vector + c % vector];
    out[i] = scales.empty() ? value : rounded(value * rounded(scales[b * axes.after + a], weight.half), weight.half);
  }
  return out;
}

/// The shape of the weight with another number of output channels.
Shape at_each_position(const Weight& weight, int64_t channels) {
  Shape out = weight.shape;
  out[static_cast<size_t>(weight.output_axis)] = channels;
  return out;
}

/// The palettes of all groups, once for each position across the output channels.
std::vector<float> repeated(const Weight& weight, const Palettes& made) {
  const PaletteAxes axes = palette_axes(weight);
  const auto groups = static_cast<size_t>(made.groups.total());
  const size_t size = made.values.size() / groups;
  std::vector<float> out;
  out.reserve(axes.before * groups * axes.after * size);
  for (size_t b = 0; b < axes.before; ++b)
    for (size_t g = 0; g < groups; ++g)
      for (size_t a = 0; a < axes.after; ++a) {
        const float* from = &made.values[g * size];
        out.insert(out.end(), from, from + size);
      }
  return out;
}

}  // namespace

std::string refusal(const Weight& weight, const Palette& palette, Form form) {
  const auto axis = static_cast<size_t>(weight.output_axis);
  if (std::set<unsigned>{1, 2, 3, 4, 6, 8}.count(palette.bits) == 0)
    return cat("expected a palette of 1, 2, 3, 4, 6 or 8 bits, got ", palette.bits);
  if (form == Form::ios16 && palette.bits == 3) return "palettes of 3 bits need a program for iOS 18";
  const bool grouped = palette.granularity == Granularity::group;
  if (form == Form::ios16 && (grouped || palette.vector > 1 || palette.scales))
    return "groups, vectors and scales of palettes need a program for iOS 18";
  if (palette.granularity != Granularity::tensor && !grouped) return "palettes are for a tensor or a group of channels";
  if (axis >= weight.shape.size()) return "its output channels are not known";
  const int64_t group = grouped ? palette.group : weight.shape[axis];
  if (!is_whole(weight.shape[axis], group)) return cat("groups of ", group, " do not divide its output channels");
  if (!is_whole(group, palette.vector)) return cat("vectors of ", palette.vector, " do not divide its groups");
  if (palette.vector > 1 && palette.mode == Palette::Mode::uniform) return "palettes of vectors cannot be uniform";
  if (palette.mode == Palette::Mode::unique && palette.vector == 1) {
    std::set<float> different;
    for (const float v : weight.values)
      if (different.insert(v).second && different.size() > size_t{1} << palette.bits)
        return cat("it has more than ", size_t{1} << palette.bits, " different values");
  }
  return "";
}

Encoding encode(const Weight& weight, const Palette& palette, Form form, const std::vector<bool>& kept) {
  std::vector<float> scales, normal;
  std::span<const float> values = weight.values;
  if (palette.scales) {
    scales = scales_of(weight);
    const PaletteAxes axes = palette_axes(weight);
    for (size_t i = 0; i < values.size(); ++i)
      normal.push_back(values[i] / scales[i / (axes.channels * axes.after) * axes.after + i % axes.after]);
    values = normal;
  }
  const Palettes made = palettes_of(weight, values, palette, kept);
  const Bytes packed = pack(made.codes, palette.bits);
  const format::BlobType floats = float_type(weight.half);
  const auto entries = static_cast<int64_t>(made.entries);
  Encoding out;
  out.decoded = decoded(weight, palette, made, packed, scales, kept);
  if (form == Form::ios16) {
    const auto bytes = static_cast<int64_t>(packed.size());
    std::vector<uint32_t> shape(weight.shape.begin(), weight.shape.end());
    const auto rank = static_cast<int64_t>(shape.size());
    out.operations.push_back(
        {"constexpr_lut_to_dense",
         {{"indices", Part{format::BlobType::uint8, {bytes}, packed}},
          {"lut", numbers(made.values, {entries}, weight.half)},
          {"shape", Part{format::BlobType::uint32, {rank}, Bytes::copy_of(std::as_bytes(std::span(shape)))}}},
         {{floats, weight.shape}}});
    out.bytes = bytes_of(out);
    return out;
  }
  Shape table = made.groups.counts;
  if (palette.scales) table = at_each_position(weight, made.groups.total());
  table.push_back(entries);
  table.push_back(palette.vector);
  Parameter lut{"lut", Earlier{0, 0}};
  if (palette.scales) {
    // Core ML runs tables that are scaled, not weights that are scaled after the table.
    Shape shape = at_each_position(weight, 1);
    shape.insert(shape.end(), {1, 1});
    out.operations.push_back({"constexpr_blockwise_shift_scale",
                              {{"data", numbers(repeated(weight, made), table, weight.half)},
                               {"scale", numbers(scales, shape, weight.half)}},
                              {{floats, table}}});
  } else {
    lut.value = numbers(made.values, table, weight.half);
  }
  std::vector<Parameter> axis;
  if (palette.vector > 1) {
    const auto number = static_cast<int32_t>(weight.output_axis);
    axis.push_back(
        {"vector_axis", Part{format::BlobType::int32, {}, Bytes::copy_of(std::as_bytes(std::span(&number, 1)))}});
  }
  if (!kept.empty()) {
    const std::vector<uint8_t> left = kept_codes(made.codes, kept);
    const auto n = static_cast<int64_t>(left.size());
    out.operations.push_back(
        {"constexpr_lut_to_sparse",
         {{"indices_mask", Part{format::BlobType::uint1, weight.shape, mask_bits(kept)}},
          {"indices_nonzero_data", Part{unsigned_type(palette.bits), {n}, pack(left, palette.bits)}},
          std::move(lut)},
         {{format::BlobType::uint1, weight.shape}, {floats, {n}}}});
    out.operations.push_back(
        {"constexpr_sparse_to_dense",
         {{"nonzero_data", Earlier{out.operations.size() - 1, 1}}, {"mask", Earlier{out.operations.size() - 1, 0}}},
         {{floats, weight.shape}}});
  } else {
    out.operations.push_back(
        {"constexpr_lut_to_dense",
         {{"indices", Part{unsigned_type(palette.bits), code_shape(weight, palette), packed}}, std::move(lut)},
         {{floats, weight.shape}}});
    std::move(axis.begin(), axis.end(), std::back_inserter(out.operations.back().parameters));
  }
  out.bytes = bytes_of(out);
  return out;
}

}  // namespace moka::compress
