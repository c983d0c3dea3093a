// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/int8_weights.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/common/packed.h"

namespace moka::devices::cpu {

using ir::DType;

namespace {

/// Whether scales of this shape vary along `axis` only.
bool is_along(const ir::Shape& s, int axis) {
  for (int i = 0; i < s.rank(); i++)
    if (i != axis && s[i] != 1) return false;
  return true;
}

}  // namespace

std::shared_ptr<Int8Weights> Int8Weights::of(const MatchCall& m, int x, int weight, int axis, const WeightSteps& steps,
                                             std::string& refusal) {
  auto no = [&](std::string why) {
    refusal = std::move(why);
    return nullptr;
  };
  const vector::Int8Gemm* b = vector::int8_gemm();
  if (b == nullptr) return no("a processor without int8 dot products");
  const auto input = m.quantized_activation(x);
  if (!input) return no("an input that is not quantized");
  if (!m.constant_args[static_cast<size_t>(weight)]) return no("weights that are not constant");
  auto stored = m.stored(weight);
  if (!stored || !stored->table.empty_handle() || stored->scale.empty_handle() || bits(stored->elements.dtype()) > 8 ||
      !ir::is_integer(stored->elements.dtype()))
    return no("weights that are not scaled integers");
  // |activation| <= 255 and |weight| <= 128.
  constexpr int64_t kDeepest = std::numeric_limits<int32_t>::max() / (255 * 128);
  if (steps.taps * steps.depth > kDeepest) return no("sums that might overflow 32 bits");
  const ir::Shape& groups = stored->scale.shape();
  if (!is_along(groups, axis) || (groups[axis] != 1 && groups[axis] != steps.columns)) return no("blocks of scales");
  std::shared_ptr<Int8Weights> w(new Int8Weights(*b));
  w->input_ = *input;
  w->steps_ = steps;
  w->arg_ = weight;
  w->axis_ = axis;
  w->stored_ = std::move(*stored);
  w->offsets_.push_back(0);
  if (!w->stored_.offset.empty_handle()) {
    w->offsets_.clear();
    for (float f : w->stored_.offset.as<float>()) {
      if (f != std::nearbyint(f) || std::fabs(f) > 255) return no("offsets that are not integers");
      w->offsets_.push_back(static_cast<int>(f));
    }
  }
  const DType t = w->stored_.elements.dtype();
  const bool is_signed = t == DType::int8 || t == DType::int4;
  const int low = is_signed ? -(1 << (bits(t) - 1)) : 0, high = low + (1 << bits(t)) - 1;
  for (int offset : w->offsets_)
    if (low - offset < -128 || high - offset > 127) return no("weights that do not fit int8 around their offset");
  return w;
}

std::string Int8Weights::describe() const {
  return cat(input_.low == -128 ? "int8" : "8 bits", " by ", stored_.elements.dtype());
}

int Int8Weights::value(int64_t at) const {
  switch (stored_.elements.dtype()) {
    case DType::int8: return static_cast<const int8_t*>(stored_.elements.data())[at];
    case DType::uint8: return static_cast<const uint8_t*>(stored_.elements.data())[at];
    case DType::int4: return (unpacked_[static_cast<size_t>(at)] ^ 8) - 8;
    default: return unpacked_[static_cast<size_t>(at)];
  }
}

void Int8Weights::write_weights(int8_t* to) const {
  const int64_t lanes = bytes_.lanes;
  for (int64_t o = 0; o < steps_.columns; o += bytes_.panel) {
    const int64_t count = std::min(bytes_.panel, steps_.columns - o), padded = (count + lanes - 1) / lanes * lanes;
    for (int64_t t = 0; t < steps_.taps; t++)
      for (int64_t q = 0; q < quads(); q++)
        for (int64_t j = 0; j < padded; j++)
          for (int64_t k = 4 * q; k < 4 * q + 4; k++)
            *to++ = j >= count || k >= steps_.depth
                        ? int8_t{0}
                        : static_cast<int8_t>(value((o + j) * steps_.column + t * steps_.tap + k * steps_.row) -
                                              offsets_[offsets_.size() == 1 ? 0 : static_cast<size_t>(o + j)]);
  }
}

/// Quantized activations are stored as unsigned distances from their lowest value. The sums start with the amount that
/// this omits.
void Int8Weights::write_sums(int32_t* first, float* scale) const {
  const int64_t padded = vectors() * bytes_.lanes;
  const auto scales = stored_.scale.as<float>();
  for (int64_t o = 0; o < padded; o++) {
    first[o] = 0;
    scale[o] = 0;
    if (o >= steps_.columns) continue;
    const int offset = offsets_[offsets_.size() == 1 ? 0 : static_cast<size_t>(o)];
    int64_t sum = 0;
    for (int64_t t = 0; t < steps_.taps; t++)
      for (int64_t k = 0; k < steps_.depth; k++)
        sum += value(o * steps_.column + t * steps_.tap + k * steps_.row) - offset;
    first[o] = static_cast<int32_t>(sum * input_.low);
    scale[o] = static_cast<float>(static_cast<double>(input_.scale) *
                                  static_cast<double>(scales[scales.size() == 1 ? 0 : static_cast<size_t>(o)]));
  }
}

Status Int8Weights::prepare(kernel::PrepareContext& context) {
  const auto unpack = [&] {
    const int64_t n = stored_.elements.count();
    if (bits(stored_.elements.dtype()) == 8 || !unpacked_.empty()) return;
    unpacked_.resize(static_cast<size_t>(n));
    ops::unpack_bits(static_cast<const uint8_t*>(stored_.elements.data()), bits(stored_.elements.dtype()), 0, n,
                     unpacked_.data());
  };
  weights_ = MOKA_TRY(context.pack_stored(arg_, cat("int8 by ", steps_.column, " ", steps_.tap),
                                          static_cast<size_t>(bytes()), [&](std::byte* to) -> Status {
                                            unpack();
                                            write_weights(reinterpret_cast<int8_t*>(to));
                                            return {};
                                          }));
  const int64_t padded = vectors() * bytes_.lanes;
  const std::string key =
      cat("sums of int8 by ", steps_.column, " ", input_.low, " ", __builtin_bit_cast(uint32_t, input_.scale));
  sums_ = MOKA_TRY(context.pack_stored(arg_, key, static_cast<size_t>(padded) * 8, [&](std::byte* to) -> Status {
    unpack();
    auto* first = reinterpret_cast<int32_t*>(to);
    write_sums(first, reinterpret_cast<float*>(first + padded));
    return {};
  }));
  stored_ = {};
  unpacked_ = {};
  return {};
}

}  // namespace moka::devices::cpu
