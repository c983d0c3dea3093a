#include <algorithm>
#include <bit>

#include "ir/evaluate.h"
#include "ops/common/affine.h"
#include "plan/constants.h"

namespace moka::plan {

namespace {

using ir::DType;
using ir::Op;
using ir::Shape;
using ir::Tensor;
using ir::Value;

const Tensor* of_file(const Value* v) {
  return v != nullptr && v->constant() != nullptr && !v->constant()->tensor.empty_handle() ? &v->constant()->tensor
                                                                                           : nullptr;
}

Result<Tensor> floats(const Tensor& t) {
  if (t.dtype() == DType::fp32) return t;
  Tensor wide = MOKA_TRY(Tensor::zeros(DType::fp32, t.shape()));
  ops::load_floats(t.view(), 0, t.count(), wide.mut<float>().data());
  return wide;
}

DType index_type(int64_t entries) {
  switch (entries) {
    case 2: return DType::uint1;
    case 4: return DType::uint2;
    case 16: return DType::uint4;
    case 64: return DType::uint6;
    default: return DType::uint8;
  }
}

Shape without_last(const Shape& s) {
  Shape out;
  for (int i = 0; i + 1 < s.rank(); i++) out.push_back(s[i]);
  return out;
}

/// The factor of each row of weights that are scaled by output channel only.
std::optional<Tensor> row_factors(const Op& op) {
  const Tensor *input = of_file(op.input("input_scale")), *output = of_file(op.input("output_scale"));
  const Tensor* transposed = of_file(op.input("transposed"));
  if (input == nullptr || output == nullptr || transposed == nullptr || input->count() != 1 ||
      ir::load_i64(transposed->view(), 0) != 0)
    return std::nullopt;
  Shape shape = op.output()->type.shape();
  for (int i = 1; i < shape.rank(); i++) shape[i] = 1;
  std::vector<float> factors;
  for (int64_t i = 0; i < shape[0]; i++)
    factors.push_back(static_cast<float>(input->as<double>()[0] *
                                         output->as<double>()[static_cast<size_t>(output->count() == 1 ? 0 : i)]));
  return Tensor::f32(shape, factors);
}

}  // namespace

Result<std::optional<kernel::StoredConstant>> ConstantPool::stored(const Value& value) {
  const Value* v = &value;
  const Op* op = v->producer();
  kernel::StoredConstant s;
  std::optional<kernel::StoredConstant> otherwise;
  if (op != nullptr && op->type_name() == "moka_scale_weights") {
    auto unscaled = MOKA_TRY(stored(*op->input("weight")));
    auto factors = row_factors(*op);
    if (!unscaled || !factors || unscaled->is_half || !unscaled->table.empty_handle() ||
        !unscaled->scale.empty_handle() || !ir::is_float(unscaled->elements.dtype()))
      return otherwise;
    unscaled->scale = std::move(*factors);
    return unscaled;
  }
  if (op != nullptr && op->type_name() == "constexpr_cast") {
    v = op->input("source_val");
    op = v->producer();
    if (op != nullptr && op->has_trait(ir::Trait::constexpr_weight) && v->type.dtype() == DType::fp16) {
      otherwise.emplace();
      otherwise->is_half = true;
    }
  }
  if (op != nullptr && op->type_name() == "constexpr_affine_dequantize") {
    ir::StaticCall call(*op);
    const Tensor* codes = of_file(op->input("quantized_data"));
    if (codes == nullptr || !call.call().is_known("scale") || !call.call().is_known("zero_point")) return otherwise;
    const ops::Affine a = MOKA_TRY(ops::affine_of(call.call(), codes->shape()));
    s.elements = *codes;
    s.scale = Tensor::f32(a.groups, a.scales);
    if (std::any_of(a.zeros.begin(), a.zeros.end(), [](float z) { return z != 0; }))
      s.offset = Tensor::f32(a.groups, a.zeros);
    return s;
  }
  if (op != nullptr && op->type_name() == "constexpr_blockwise_shift_scale") {
    if (!is_constant(*op->input("scale"))) return otherwise;
    s.scale = MOKA_TRY(floats(MOKA_TRY(get(*op->input("scale"), false))));
    if (op->input("offset") != nullptr) s.offset = MOKA_TRY(floats(MOKA_TRY(get(*op->input("offset"), false))));
    v = op->input("data");
    op = v->producer();
  }
  if (op != nullptr && op->type_name() == "constexpr_lut_to_dense") {
    const Tensor* indices = of_file(op->input("indices"));
    if (indices == nullptr) return otherwise;
    Tensor table = MOKA_TRY(floats(MOKA_TRY(get(*op->input("lut"), false))));
    if (op->version().param_index("shape") >= 0) {
      const Shape& shape = op->output()->type.shape();
      s.elements = MOKA_TRY(
          Tensor::wrap(index_type(table.count()), shape,
                       Bytes{{static_cast<const std::byte*>(indices->data()), indices->bytes()}, indices->owner()}));
      Shape one = shape;
      for (int i = 0; i < one.rank(); i++) one[i] = 1;
      one.push_back(table.count());
      s.table = table.reshaped(one);
    } else {
      if (table.shape()[table.shape().rank() - 1] != 1) return otherwise;  // entries are vectors
      s.elements = *indices;
      s.table = table.reshaped(without_last(table.shape()));
    }
    return s;
  }
  const Tensor* codes = of_file(v);
  if (codes == nullptr) return otherwise;
  s.elements = *codes;
  return s;
}

}  // namespace moka::plan
