// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "ops/common/common.h"
#include "ops/common/lut.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

/// The iOS16 version: indices are a flat array of bytes, with one table and a parameter for the shape.
Result<std::vector<Type>> infer_flat_lut(const OpCall& call) {
  const Type &indices = call.type("indices"), &lut = call.type("lut");
  for (const auto& [name, type] : {std::pair<std::string_view, const Type&>{"indices", indices}, {"lut", lut}}) {
    if (!type.is_concrete() || type.rank() != 1) return call.error(name, "a vector of known length", cat(type));
  }
  const int64_t entries = lut.shape()[0];
  if (entries != 2 && entries != 4 && entries != 16 && entries != 64 && entries != 256) {
    return call.error("lut", "2, 4, 16, 64 or 256 values", cat(entries));
  }
  const Ints dims = MOKA_TRY(call.ints("shape"));
  const Shape shape = MOKA_TRY(Shape::make(dims.span()));
  for (int64_t d : shape) MOKA_TRY(dim_from_value(call, "shape", d));
  const int64_t count = MOKA_TRY(shape.checked_count()), bits = std::countr_zero(static_cast<uint64_t>(entries));
  const int64_t need = count / 8 * bits + (count % 8 * bits + 7) / 8;
  if (indices.shape()[0] != need)
    return call.error("indices", cat(need, " bytes for ", count, " indices of ", bits, " bits"),
                      cat(indices.shape()[0]));
  return tensor_result(call, lut.dtype(), shape);
}

Status reference_flat(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &indices = call.in("indices"), &lut = call.in("lut");
  const int64_t n = out[0].count(), entries = lut.count();
  if (n == 0) return {};
  BlockRuns runs(Shape{n}, Shape{1});
  expand_lut(out[0], indices.as<uint8_t>(), std::countr_zero(static_cast<uint64_t>(entries)), n, lut, entries, runs);
  return {};
}

Result<std::vector<Type>> infer_constexpr_lut_to_dense(const OpCall& call) {
  const Type& indices = call.type("indices");
  if (!indices.is_concrete()) return call.error("indices", "a constant of known shape", cat(indices));
  const Lut lut = MOKA_TRY(check_lut(call, indices.shape(), indices.dtype()));
  return tensor_result(call, call.dtype("lut"), lut.dense);
}

Status constexpr_lut_to_dense_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &indices = call.in("indices"), &lut = call.in("lut");
  if (out[0].count() == 0) return {};
  const Lut info = MOKA_TRY(check_lut(call, indices.shape, indices.dtype));
  const int width = bits(indices.dtype);
  if (info.vector == 1) {
    BlockRuns runs(indices.shape, info.groups);
    expand_lut(out[0], indices.as<uint8_t>(), width, indices.count(), lut, info.entries, runs);
  } else {
    expand_vectors(out[0], indices.as<uint8_t>(), width, indices.shape, lut, info);
  }
  return {};
}

}  // namespace

OpDef define_constexpr_lut_to_dense() {
  return OpBuilder("constexpr_lut_to_dense",
                   "Weights looked up in a table of values; since iOS18 in a table per block, whose "
                   "entries may be vectors laid out along an axis.",
                   Opset::ios16)
      .type_var("T", kLutValues)
      .constant("indices", only(DType::uint8))
      .attribute()
      .constant("lut", "T")
      .attribute()
      .constant("shape", only(DType::uint32))
      .attribute()
      .infer(infer_flat_lut)
      .reference(reference_flat)
      .traits(Trait::constexpr_weight)
      .at(Opset::ios18,
          [](OpVersion& v) {
            for (ParamDef& p : v.params) p.attribute = false;
            retype(v, "indices", "IndicesT", kLutIndices);
            ParamDef& axis = v.edit("shape");
            axis.name = "vector_axis";
            axis.dtypes = kI32;
            axis.optional = true;
            v.infer = infer_constexpr_lut_to_dense;
            v.reference = constexpr_lut_to_dense_reference;
          })
      .note(
          "Until iOS16: indices are packed from the lowest bit up, with log2 of the lut's length bits each; 2, 4, 16, "
          "64 "
          "or 256 values.",
          "coremltools' definition")
      .note(
          "Since iOS18: lut is [groups..., 2^bits, vector size], where groups divide the dimensions of the indices; "
          "uint1, "
          "uint2, uint3, uint4, uint6 and uint8.",
          "coremltools' definition")
      .note(
          "Vectors lie along vector_axis: element v of the vector at index i of that axis becomes element i * size + "
          "v.",
          "coremltools' iOS18 test_compression.py, test_builder_eval_vector_lut")
      .build();
}

}  // namespace moka::ops
