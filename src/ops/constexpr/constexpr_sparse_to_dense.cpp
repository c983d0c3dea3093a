// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/common/common.h"
#include "ops/common/packed.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Status check_data(const OpCall& call) {
  const Type& data = call.type("nonzero_data");
  if (!data.is_concrete() || data.rank() != 1) return call.error("nonzero_data", "a vector of known length", cat(data));
  return {};
}

/// The iOS16 version: the mask is a vector of bytes, with a parameter for the shape.
Result<std::vector<Type>> infer_flat_sparse(const OpCall& call) {
  MOKA_TRY(check_data(call));
  const Type& mask = call.type("mask");
  if (!mask.is_concrete() || mask.rank() != 1) return call.error("mask", "a vector of known length", cat(mask));
  const Ints dims = MOKA_TRY(call.ints("shape"));
  const Shape shape = MOKA_TRY(Shape::make(dims.span()));
  for (int64_t d : shape) MOKA_TRY(dim_from_value(call, "shape", d));
  const int64_t count = MOKA_TRY(shape.checked_count()), need = count / 8 + (count % 8 != 0);
  if (mask.shape()[0] != need)
    return call.error("mask", cat(need, " bytes for ", count, " elements"), cat(mask.shape()[0]));
  return tensor_result(call, call.dtype("nonzero_data"), shape);
}

Result<std::vector<Type>> infer_constexpr_sparse_to_dense(const OpCall& call) {
  MOKA_TRY(check_data(call));
  const Type& mask = call.type("mask");
  if (!mask.is_concrete()) return call.error("mask", "a constant of known shape", cat(mask));
  return tensor_result(call, call.dtype("nonzero_data"), mask.shape());
}

Status constexpr_sparse_to_dense_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &data = call.in("nonzero_data"), &y = out[0];
  const auto* mask = call.in("mask").as<uint8_t>();
  const int64_t n = y.count(), set = count_bits(mask, 0, n);
  if (set != data.count())
    return call.error("mask", cat(data.count(), " set bits, one for each of nonzero_data"), cat(set));
  if (n == 0) return {};
  int64_t next = 0;
  auto scatter = [&](auto* to, const auto* from) {
    for_each_set_bit(mask, 0, n, [&](int64_t i) { to[i] = from[next++]; });
  };
  if (bits(data.dtype) == 4) {
    auto* to = y.as<uint8_t>();
    const auto* from = data.as<uint8_t>();
    std::fill_n(to, (n + 1) / 2, uint8_t{0});
    for_each_set_bit(mask, 0, n, [&](int64_t i) {
      const int v = (from[next / 2] >> (next % 2 * 4)) & 15;
      to[i / 2] = static_cast<uint8_t>(to[i / 2] | v << (i % 2 * 4));
      next++;
    });
    return {};
  }
  zero_elements(y, 0, n);
  switch (bits(data.dtype)) {
    case 8: scatter(y.as<uint8_t>(), data.as<uint8_t>()); break;
    case 16: scatter(y.as<uint16_t>(), data.as<uint16_t>()); break;
    case 32: scatter(y.as<uint32_t>(), data.as<uint32_t>()); break;
    default: for_each_set_bit(mask, 0, n, [&](int64_t i) { copy_element(y, i, data, next++); });
  }
  return {};
}

}  // namespace

OpDef define_constexpr_sparse_to_dense() {
  return OpBuilder("constexpr_sparse_to_dense", "Weights that are zero except where a bit of the mask is set.",
                   Opset::ios16)
      .type_var("T", any_of(DType::int8, DType::uint8, DType::fp16, DType::fp32))
      .constant("nonzero_data", "T")
      .attribute()
      .constant("mask", only(DType::uint8))
      .attribute()
      .constant("shape", only(DType::uint32))
      .attribute()
      .infer(infer_flat_sparse)
      .reference(constexpr_sparse_to_dense_reference)
      .traits(Trait::constexpr_weight)
      .at(Opset::ios18,
          [](OpVersion& v) {
            for (ParamDef& p : v.params) p.attribute = false;
            v.params.pop_back();
            v.edit("mask").dtypes = only(DType::uint1);
            v.set_domain("T", any_of(DType::int4, DType::uint4, DType::int8, DType::uint8, DType::fp16, DType::fp32));
            v.infer = infer_constexpr_sparse_to_dense;
          })
      .note("Bits are counted from the lowest bit of each byte. There must be as many set bits as values.",
            "coremltools' definition")
      .build();
}

}  // namespace moka::ops
