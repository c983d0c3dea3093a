// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "compress/blocks.h"
#include "compress/scale.h"

namespace moka::compress {
namespace {

struct Range {
  int least, most;
};
Range range_of(const Linear& linear) {
  const int count = 1 << linear.bits;
  Range out = linear.is_signed ? Range{-count / 2, count / 2 - 1} : Range{0, count - 1};
  if (linear.symmetric) (linear.is_signed ? out.least : out.most) += linear.is_signed ? 1 : -1;
  return out;
}

Blocks blocks_of(const Weight& weight, const Linear& linear) {
  Blocks out{weight.shape, Shape(weight.shape.size(), 1)};
  const auto input = static_cast<size_t>(weight.input_axis), output = static_cast<size_t>(weight.output_axis);
  if (linear.granularity == Granularity::tensor) return out;
  if (output < out.counts.size()) out.counts[output] = weight.shape[output];
  if (linear.granularity == Granularity::block && input < out.counts.size())
    out.counts[input] = weight.shape[input] / linear.block;
  return out;
}

/// The next smaller positive number of the weight's type.
float below(float scale, bool half) {
  if (!half) return std::nextafter(scale, 0.0F);
  return half::to_float(static_cast<uint16_t>(half::from_float(scale) - 1));
}

}  // namespace

Scale scale_of(float least, float most, const Linear& linear, bool half) {
  const Range range = range_of(linear);
  if (linear.symmetric) {
    most = std::max(std::abs(least), std::abs(most));
    least = -most;
  } else {
    least = std::min(least, 0.0F);
    most = std::max(most, 0.0F);
  }
  Scale out;
  if (linear.symmetric && !linear.is_signed) out.zero = range.most / 2;
  const double width = static_cast<double>(most) - least;
  if (width == 0) return out;
  out.scale = rounded(static_cast<float>(width / (range.most - range.least)), half);
  // Halves below their smallest number.
  if (out.scale == 0) out.scale = rounded(6.0e-8F, half);
  if (!linear.symmetric) {
    const double zero = (double{1} * range.least * most - double{1} * range.most * least) / width;
    out.zero = std::clamp(static_cast<int>(std::nearbyint(zero)), range.least, range.most);
  }
  // Where the scale was rounded up, the product with the furthest integer may exceed the type.
  const auto furthest = static_cast<float>(std::max(out.zero - range.least, range.most - out.zero));
  while (!std::isfinite(rounded(furthest * out.scale, half))) out.scale = below(out.scale, half);
  return out;
}

namespace {

format::BlobType code_type(const Linear& linear) {
  if (linear.bits == 4) return linear.is_signed ? format::BlobType::int4 : format::BlobType::uint4;
  return linear.is_signed ? format::BlobType::int8 : format::BlobType::uint8;
}

/// The number that a stored code stands for.
int number_of(unsigned code, const Linear& linear) {
  const int sign = 1 << (linear.bits - 1);
  return linear.is_signed ? (static_cast<int>(code) ^ sign) - sign : static_cast<int>(code);
}

struct Codes {
  std::vector<uint8_t> codes, zeros;
  std::vector<float> scales;
};

Codes quantize(const Weight& weight, const Linear& linear, const Blocks& blocks) {
  const auto count = static_cast<size_t>(blocks.total());
  std::vector<float> least(count, INFINITY), most(count, -INFINITY);
  const float* values = weight.values.data();
  blocks.each_run([&](int64_t begin, int64_t length, int64_t block) {
    const auto [low, high] = std::minmax_element(values + begin, values + begin + length);
    least[static_cast<size_t>(block)] = std::min(least[static_cast<size_t>(block)], *low);
    most[static_cast<size_t>(block)] = std::max(most[static_cast<size_t>(block)], *high);
  });
  Codes out;
  out.codes.resize(weight.values.size());
  std::vector<Scale> scales(count);
  for (size_t i = 0; i < count; ++i) {
    scales[i] = scale_of(least[i], most[i], linear, weight.half);
    out.scales.push_back(scales[i].scale);
    out.zeros.push_back(static_cast<uint8_t>(scales[i].zero));
  }
  const Range range = range_of(linear);
  blocks.each_run([&](int64_t begin, int64_t length, int64_t block) {
    const Scale s = scales[static_cast<size_t>(block)];
    for (int64_t i = begin; i < begin + length; ++i) {
      const float code = std::nearbyint(values[i] / s.scale) + static_cast<float>(s.zero);
      out.codes[static_cast<size_t>(i)] = static_cast<uint8_t>(
          static_cast<int>(std::clamp(code, static_cast<float>(range.least), static_cast<float>(range.most))));
    }
  });
  return out;
}

}  // namespace

std::string refusal(const Weight& weight, const Linear& linear, Form form) {
  if (linear.bits != 4 && linear.bits != 8) return cat("expected 4 or 8 bits, got ", linear.bits);
  if (form == Form::ios16 && linear.bits != 8) return "4 bits need a program for iOS 18";
  if (linear.granularity == Granularity::group) return "groups of channels are a form of palettes";
  if (linear.granularity == Granularity::block) {
    if (form == Form::ios16) return "blocks need a program for iOS 18";
    const auto axis = static_cast<size_t>(weight.input_axis);
    if (linear.block < 1 || axis >= weight.shape.size() || weight.shape[axis] % linear.block != 0)
      return cat("blocks of ", linear.block, " do not divide its input channels");
  }
  return "";
}

Encoding encode(const Weight& weight, const Linear& linear, Form form, const std::vector<bool>& kept) {
  const Blocks blocks = blocks_of(weight, linear);
  const Codes codes = quantize(weight, linear, blocks);
  const bool has_zeros = !linear.symmetric || !linear.is_signed;
  const format::BlobType type = code_type(linear), floats = float_type(weight.half);
  Encoding out;
  out.decoded.resize(weight.values.size());
  const Bytes packed = pack(codes.codes, linear.bits);
  blocks.each_run([&](int64_t begin, int64_t length, int64_t block) {
    const auto b = static_cast<size_t>(block);
    const int zero = has_zeros ? number_of(codes.zeros[b] & ((1U << linear.bits) - 1), linear) : 0;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(begin + length); ++i) {
      const int number = number_of(unpack(packed.data(), linear.bits, i), linear) - zero;
      const bool is_kept = kept.empty() || kept[i];
      out.decoded[i] = is_kept ? rounded(static_cast<float>(number) * codes.scales[b], weight.half) : 0;
    }
  });
  if (form == Form::ios16) {
    // One axis has channels, or there is one scale.
    const Shape vector = codes.scales.size() > 1 ? Shape{static_cast<int64_t>(codes.scales.size())} : Shape{};
    const int32_t axis = vector.empty() ? 0 : static_cast<int32_t>(weight.output_axis);
    out.operations.push_back(
        {"constexpr_affine_dequantize",
         {{"quantized_data", Part{type, weight.shape, packed}},
          {"zero_point", Part{type, vector, pack(codes.zeros, linear.bits)}},
          {"scale", numbers(codes.scales, vector, weight.half)},
          {"axis", Part{format::BlobType::int32, {}, Bytes::copy_of(std::as_bytes(std::span(&axis, 1)))}}},
         {{floats, weight.shape}}});
    out.bytes = bytes_of(out);
    return out;
  }
  ConstexprOp op{
      "constexpr_blockwise_shift_scale", {{"data", Part{type, weight.shape, packed}}}, {{floats, weight.shape}}};
  if (!kept.empty()) {
    const std::vector<uint8_t> left = kept_codes(codes.codes, kept);
    const auto n = static_cast<int64_t>(left.size());
    op = {"constexpr_sparse_blockwise_shift_scale",
          {{"data_mask", Part{format::BlobType::uint1, weight.shape, mask_bits(kept)}},
           {"nonzero_data", Part{type, {n}, pack(left, linear.bits)}}},
          {{format::BlobType::uint1, weight.shape}, {floats, {n}}}};
  }
  op.parameters.push_back({"scale", numbers(codes.scales, blocks.counts, weight.half)});
  if (has_zeros) op.parameters.push_back({"offset", Part{type, blocks.counts, pack(codes.zeros, linear.bits)}});
  out.operations.push_back(std::move(op));
  if (!kept.empty())
    out.operations.push_back({"constexpr_sparse_to_dense",
                              {{"nonzero_data", Earlier{0, 1}}, {"mask", Earlier{0, 0}}},
                              {{floats, weight.shape}}});
  out.bytes = bytes_of(out);
  return out;
}

}  // namespace moka::compress
