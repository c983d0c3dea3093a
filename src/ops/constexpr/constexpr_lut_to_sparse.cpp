// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/common/common.h"
#include "ops/common/lut.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_constexpr_lut_to_sparse(const OpCall& call) {
  const Type &mask = call.type("indices_mask"), &data = call.type("indices_nonzero_data");
  if (!mask.is_concrete()) return call.error("indices_mask", "a constant of known shape", cat(mask));
  if (!data.is_concrete() || data.rank() != 1)
    return call.error("indices_nonzero_data", "a vector of known length", cat(data));
  const Lut lut = MOKA_TRY(check_lut(call, mask.shape(), data.dtype()));
  return std::vector<Type>{Type::tensor(DType::uint1, lut.dense),
                           Type::tensor(call.dtype("lut"), {MOKA_TRY(multiply_dims(data.shape()[0], lut.vector))})};
}

/// Repeats each row of `inner` bits `times` times.
void repeat_mask(const TensorView& out, const uint8_t* mask, int64_t rows, int64_t inner, int64_t times) {
  auto* to = out.as<uint8_t>();
  std::fill_n(to, (rows * inner * times + 7) / 8, uint8_t{0});
  for (int64_t r = 0; r < rows; r++) {
    for_each_set_bit(mask, r * inner, inner, [&](int64_t i) {
      for (int64_t t = 0; t < times; t++) {
        const int64_t bit = (r * times + t) * inner + (i - r * inner);
        to[bit / 8] = static_cast<uint8_t>(to[bit / 8] | 1u << (bit % 8));
      }
    });
  }
}

Status constexpr_lut_to_sparse_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &mask = call.in("indices_mask"), &data = call.in("indices_nonzero_data"), &lut = call.in("lut");
  const auto* set = mask.as<uint8_t>();
  const int64_t n = mask.count(), found = count_bits(set, 0, n);
  if (found != data.count()) {
    return call.error("indices_mask", cat(data.count(), " set bits, one for each of indices_nonzero_data"), cat(found));
  }
  const Lut info = MOKA_TRY(check_lut(call, mask.shape, data.dtype));
  // Vectors extend along the axis, so all values of one row precede the next component.
  const int64_t inner = info.vector == 1 ? n : mask.shape.count(info.axis + 1, mask.shape.rank());
  if (info.vector == 1)
    copy_all(out[0], mask);
  else
    repeat_mask(out[0], set, inner == 0 ? 0 : n / inner, inner, info.vector);
  if (found == 0) return {};

  BlockRuns runs(mask.shape, info.groups);
  const int width = bits(data.dtype);
  const auto* packed = data.as<uint8_t>();
  std::vector<uint8_t> indices;
  std::vector<int64_t> entries;  // table entries for the set bits of one row
  with_element_size(out[1], lut, [&](auto* to, const auto* values) {
    int64_t next = 0;
    auto take = [&](int64_t m) {
      indices.resize(static_cast<size_t>(m));
      unpack_bits(packed, width, next, m, indices.data());
      next += m;
    };
    if (info.vector == 1) {
      for (int64_t at = 0; at < n;) {
        const int64_t length = std::min<int64_t>(runs.left(), 1 << 16);
        const auto* table = values + runs.group() * info.entries;
        take(count_bits(set, at, length));
        for (uint8_t i : indices) *to++ = table[i];
        at += length;
        runs.advance(length);
      }
      return;
    }
    for (int64_t row = 0; row < n; row += inner) {
      entries.clear();
      for (int64_t at = row; at < row + inner;) {
        const int64_t length = std::min(runs.left(), row + inner - at);
        take(count_bits(set, at, length));
        for (uint8_t i : indices) entries.push_back((runs.group() * info.entries + i) * info.vector);
        at += length;
        runs.advance(length);
      }
      for (int64_t v = 0; v < info.vector; v++)
        for (int64_t e : entries) *to++ = values[e + v];
    }
  });
  return {};
}

}  // namespace

OpDef define_constexpr_lut_to_sparse() {
  return OpBuilder("constexpr_lut_to_sparse",
                   "The values of sparse weights looked up in tables per block of the dense tensor; "
                   "gives the mask and the values.",
                   Opset::ios18)
      .type_var("IndicesT", kLutIndices)
      .type_var("T", kLutValues)
      .constant("indices_mask", only(DType::uint1))
      .constant("indices_nonzero_data", "IndicesT")
      .constant("lut", "T")
      .constant("vector_axis", kI32)
      .optional()
      .infer(infer_constexpr_lut_to_sparse)
      .reference(constexpr_lut_to_sparse_reference)
      .traits(Trait::constexpr_weight)
      .note("The k-th set bit of the mask takes the k-th index. Its group is that of its position in the dense tensor.",
            "coremltools' definition")
      .note(
          "With vectors the mask is repeated along vector_axis, and the values follow the dense tensor's row-major "
          "order.",
          "coremltools' iOS18 test_compression.py, test_builder_eval_vector_lut")
      .build();
}

}  // namespace moka::ops
