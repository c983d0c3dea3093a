// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/half.h"
#include "compress/blocks.h"

namespace moka::compress {
namespace {

/// As numpy.percentile: interpolates between neighbors in the arithmetic of the weight's type. coremltools passes 100
/// times the fraction, which numpy divides by 100 again; both steps may round.
float percentile(std::vector<float> sizes, double fraction, bool half) {
  constexpr double percent = 100;
  const double rank = fraction * percent / percent * static_cast<double>(sizes.size() - 1);
  const auto low = static_cast<size_t>(rank);
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(low), sizes.end());
  const float below = sizes[low];
  if (low + 1 >= sizes.size()) return below;
  const float above = *std::min_element(sizes.begin() + static_cast<std::ptrdiff_t>(low) + 1, sizes.end());
  const auto typed = [&](double value) { return half ? moka::half(value) : static_cast<float>(value); };
  const double between = rank - static_cast<double>(low);
  const float distance = typed(above - below);
  if (between < 0.5) return typed(below + typed(distance * typed(between)));
  return typed(above - typed(distance * typed(1 - between)));
}

/// Distance between neighbors along an axis.
size_t step_of(const Shape& shape, size_t axis) {
  return static_cast<size_t>(std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end(),
                                             int64_t{1}, std::multiplies<>()));
}

/// The norm of the block that each element is in, along the output channels, in steps of the weight's type. The last
/// block may be shorter.
std::vector<float> block_norms(const Weight& weight, size_t block) {
  const auto axis = static_cast<size_t>(weight.output_axis), size = static_cast<size_t>(weight.shape[axis]);
  const size_t step = step_of(weight.shape, axis);
  std::vector<float> out(weight.values.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t channel = i / step % size;
    if (channel % block != 0) continue;
    const size_t count = std::min(block, size - channel);
    float sum = 0;
    for (size_t k = 0; k < count; ++k) {
      const float value = weight.values[i + k * step], square = rounded(value * value, weight.half);
      sum = rounded(sum + square, weight.half);
    }
    for (size_t k = 0; k < count; ++k) out[i + k * step] = rounded(std::sqrt(sum), weight.half);
  }
  return out;
}

std::vector<bool> smallest_of_neighbors(const Weight& weight, size_t n, size_t m) {
  const auto axis = static_cast<size_t>(weight.input_axis), size = static_cast<size_t>(weight.shape[axis]);
  const size_t step = step_of(weight.shape, axis);
  std::vector<bool> kept(weight.values.size(), true);
  for (size_t i = 0; i < kept.size(); ++i) {
    const size_t channel = i / step % size;
    if (channel % m != 0) continue;
    const size_t count = std::min(m, size - channel);
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::abs(weight.values[i + a * step]) < std::abs(weight.values[i + b * step]);
    });
    // Missing neighbors count as zeros, which fall first.
    const size_t missing = m - count;
    for (size_t k = 0; k + missing < n && k < count; ++k) kept[i + order[k] * step] = false;
  }
  return kept;
}

}  // namespace

std::string refusal(const Weight& weight, const Prune& prune, Form) {
  const int rules = (prune.sparsity > 0) + (prune.threshold >= 0) + (prune.m > 0);
  if (rules != 1) return "expected one of a sparsity, a threshold and n of m";
  if (prune.sparsity > 1) return cat("expected a sparsity from 0 to 1, got ", prune.sparsity);
  const auto input = static_cast<size_t>(weight.input_axis), output = static_cast<size_t>(weight.output_axis);
  if (prune.m > 0 && (prune.n < 1 || prune.n > prune.m))
    return cat("expected n from 1 to m, got ", prune.n, ":", prune.m);
  if (prune.m > 0 && (input >= weight.shape.size() || prune.m * 2 > weight.shape[input]))
    return cat(prune.m, " neighbors are more than half of its input channels");
  if (prune.block > 0 && (output >= weight.shape.size() || prune.block * 2 > weight.shape[output]))
    return cat("blocks of ", prune.block, " are more than half of its output channels");
  return "";
}

std::string refusal(const std::vector<bool>& kept, const Prune& prune) {
  if (prune.threshold < 0) return "";
  const auto zeros = static_cast<double>(std::count(kept.begin(), kept.end(), false));
  const double sparsity = zeros / static_cast<double>(kept.size());
  if (sparsity >= prune.least_sparsity) return "";
  return cat("a threshold of ", prune.threshold, " leaves a sparsity of ", sparsity, ", less than ",
             prune.least_sparsity);
}

std::vector<bool> kept_by(const Weight& weight, const Prune& prune) {
  std::vector<bool> kept;
  if (prune.m > 0) {
    kept = smallest_of_neighbors(weight, static_cast<size_t>(prune.n), static_cast<size_t>(prune.m));
  } else {
    std::vector<float> sizes(weight.values.size());
    std::transform(weight.values.begin(), weight.values.end(), sizes.begin(), [](float v) { return std::abs(v); });
    if (prune.block > 0) sizes = block_norms(weight, static_cast<size_t>(prune.block));
    const float limit = prune.threshold >= 0  ? rounded(static_cast<float>(prune.threshold), weight.half)
                        : prune.sparsity >= 1 ? INFINITY
                                              : percentile(sizes, prune.sparsity, weight.half);
    for (const float size : sizes) kept.push_back(size > limit);
  }
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = kept[i] && weight.values[i] != 0;
  return kept;
}

Encoding encode_sparse(const Weight& weight, const std::vector<bool>& kept, Form form) {
  std::vector<float> left;
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) left.push_back(weight.values[i]);
  const auto n = static_cast<int64_t>(left.size());
  const format::BlobType floats = float_type(weight.half);
  const Bytes mask = mask_bits(kept);
  Encoding out;
  for (size_t i = 0, next = 0; i < kept.size(); ++i) {
    const bool set = unpack(mask.data(), 1, i) != 0;
    out.decoded.push_back(set ? rounded(left[next], weight.half) : 0);
    next += set;
  }
  ConstexprOp op{
      "constexpr_sparse_to_dense", {{"nonzero_data", numbers(left, {n}, weight.half)}}, {{floats, weight.shape}}};
  if (form == Form::ios16) {
    std::vector<uint32_t> shape(weight.shape.begin(), weight.shape.end());
    op.parameters.push_back({"mask", Part{format::BlobType::uint8, {static_cast<int64_t>(mask.size())}, mask}});
    op.parameters.push_back({"shape", Part{format::BlobType::uint32,
                                           {static_cast<int64_t>(shape.size())},
                                           Bytes::copy_of(std::as_bytes(std::span(shape)))}});
  } else {
    op.parameters.push_back({"mask", Part{format::BlobType::uint1, weight.shape, mask}});
  }
  out.operations.push_back(std::move(op));
  out.bytes = bytes_of(out);
  return out;
}

}  // namespace moka::compress
