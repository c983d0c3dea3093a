// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ir/evaluate.h"
#include "ir/fixed.h"
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

std::optional<DType> unsigned_type(int bits) {
  for (DType t : {DType::uint1, DType::uint2, DType::uint3, DType::uint4, DType::uint6, DType::uint8})
    if (ir::bits(t) == bits) return t;
  return std::nullopt;
}

Bytes bytes_of(const Tensor& t) { return {{static_cast<const std::byte*>(t.data()), t.bytes()}, t.owner()}; }

Shape without_last(const Shape& s) {
  Shape out;
  for (int i = 0; i + 1 < s.rank(); i++) out.push_back(s[i]);
  return out;
}

/// The bytes of a neural network's floats.
Result<std::optional<kernel::StoredConstant>> network_floats(const Op& op) {
  const ir::StaticCall call(op);
  const Tensor* bytes = of_file(op.input("data"));
  std::optional<kernel::StoredConstant> s;
  if (bytes == nullptr || !call.call().is_known("dtype")) return s;
  s.emplace();
  const DType type = MOKA_TRY(call.call().text("dtype")) == "fp16" ? DType::fp16 : DType::fp32;
  s->elements = MOKA_TRY(Tensor::wrap_unaligned(type, op.output()->type.shape(), bytes_of(*bytes)));
  s->in_network_format = true;
  return s;
}

/// A neural network's integers. Their values are table[q] or scale * q + bias, with one scale and bias for all weights
/// or for each index along an axis.
Result<std::optional<kernel::StoredConstant>> network_integers(const Op& op) {
  const ir::StaticCall call(op);
  const Tensor *codes = of_file(op.input("data")), *scale = of_file(op.input("scale")),
               *bias = of_file(op.input("bias")), *table = of_file(op.input("lut"));
  std::optional<kernel::StoredConstant> s;
  const Shape& shape = op.output()->type.shape();
  if (codes == nullptr || shape.rank() == 0 || shape.count() == 0) return s;
  const auto bits = static_cast<int>(MOKA_TRY(call.call().integer("bits")));
  const int64_t axis = MOKA_TRY(call.call().integer("axis"));
  const auto type = bits == 8 ? std::optional(codes->dtype()) : unsigned_type(bits);
  if (!type || axis < 0 || axis >= shape.rank()) return s;
  Shape one = shape;
  for (int i = 0; i < one.rank(); i++) one[i] = 1;
  kernel::StoredConstant made;
  made.elements = MOKA_TRY(Tensor::wrap_unaligned(*type, shape, bytes_of(*codes)));
  made.in_network_format = bits < 8;
  if (table != nullptr) {
    if (codes->dtype() == DType::int8) return s;
    one.push_back(table->count());
    made.table = table->reshaped(one);
  } else if (scale != nullptr) {
    const int64_t count = std::max(scale->count(), bias == nullptr ? 1 : bias->count());
    one[static_cast<int>(axis)] = count;
    std::vector<float> scales, offsets;
    for (int64_t i = 0; i < count; i++) {
      scales.push_back(scale->as<float>()[static_cast<size_t>(scale->count() == 1 ? 0 : i)]);
      const float b = bias == nullptr ? 0.0f : bias->as<float>()[static_cast<size_t>(bias->count() == 1 ? 0 : i)];
      offsets.push_back(b == 0 ? 0.0f : -b / scales.back());
      if (!std::isfinite(scales.back()) || !std::isfinite(offsets.back())) return s;
    }
    made.scale = Tensor::f32(one, scales);
    if (bias != nullptr) made.offset = Tensor::f32(one, offsets);
  }
  s = std::move(made);
  return s;
}

/// The factor of each row of weights that are scaled by output channel only.
std::optional<Tensor> row_factors(const Op& op, const Tensor& input, const Tensor& output) {
  const Tensor* transposed = of_file(op.input("transposed"));
  if (transposed == nullptr || input.count() != 1 || ir::load_i64(transposed->view(), 0) != 0) return std::nullopt;
  Shape shape = op.output()->type.shape();
  for (int i = 1; i < shape.rank(); i++) shape[i] = 1;
  std::vector<float> factors;
  for (int64_t i = 0; i < shape[0]; i++)
    factors.push_back(static_cast<float>(input.as<double>()[0] *
                                         output.as<double>()[static_cast<size_t>(output.count() == 1 ? 0 : i)]));
  return Tensor::f32(shape, factors);
}

/// An entry for each of `rows` rows of a tensor whose entries hold for blocks of rows.
Tensor each_row(const Tensor& t, int64_t rows) {
  Shape shape = t.shape();
  const int64_t inner = t.count() / shape[0], block = rows / shape[0];
  shape[0] = rows;
  std::vector<float> values;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < inner; i++) values.push_back(t.as<float>()[static_cast<size_t>(r / block * inner + i)]);
  return Tensor::f32(shape, values);
}

/// Scales the rows by `factors`.
void multiply(kernel::StoredConstant& s, Tensor factors) {
  if (s.scale.empty_handle()) {
    s.scale = std::move(factors);
    return;
  }
  const int64_t rows = factors.count();
  Tensor scale = each_row(s.scale, rows);
  const int64_t inner = scale.count() / rows;
  for (int64_t i = 0; i < scale.count(); i++)
    scale.mut<float>()[static_cast<size_t>(i)] *= factors.as<float>()[static_cast<size_t>(i / inner)];
  s.scale = std::move(scale);
  if (!s.offset.empty_handle()) s.offset = each_row(s.offset, rows);
  if (s.rounding) s.rounding = {each_row(s.rounding->scale, rows), std::move(factors)};
}

}  // namespace

Result<std::optional<kernel::StoredConstant>> ConstantPool::stored(const Value& value) {
  if (renewable_ && ir::is_from_parameter(value)) return std::optional<kernel::StoredConstant>();
  const auto behind_parameter = [this](const Value* v) {
    while (v->producer() != nullptr && v->producer()->has_trait(ir::Trait::parameter) && !parameters_.contains(v))
      v = v->producer()->input("initial");
    return v;
  };
  const Value* v = behind_parameter(&value);
  const Op* op = v->producer();
  kernel::StoredConstant s;
  std::optional<kernel::StoredConstant> otherwise;
  bool is_cast = false;
  const auto rounded = [&] {
    if (is_cast && !s.scale.empty_handle()) s.rounding = {s.scale, {}};
    return std::move(s);
  };
  if (op != nullptr && op->type_name() == "moka_scale_weights") {
    auto unscaled = MOKA_TRY(stored(*op->input("weight")));
    auto factors = row_factors(*op, MOKA_TRY(get(*op->input("input_scale"), false)),
                               MOKA_TRY(get(*op->input("output_scale"), false)));
    if (!unscaled || !factors || unscaled->is_half || value.type.shape().count() == 0) return otherwise;
    multiply(*unscaled, std::move(*factors));
    return unscaled;
  }
  if (op != nullptr && op->type_name() == "nn_weight_bytes") return network_floats(*op);
  if (op != nullptr && op->type_name() == "nn_dequantize_weights") return network_integers(*op);
  if (op != nullptr && op->type_name() == "constexpr_cast") {
    v = behind_parameter(op->input("source_val"));
    op = v->producer();
    is_cast = true;
    if (op != nullptr && op->has_trait(ir::Trait::constexpr_weight) && v->type.dtype() == DType::fp16) {
      otherwise.emplace();
      otherwise->is_half = true;
      if (op->type_name() == "constexpr_sparse_to_dense")
        otherwise->nonzero = op->input("nonzero_data")->type.shape().count();
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
    return rounded();
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
      s.elements = MOKA_TRY(Tensor::wrap(index_type(table.count()), shape, bytes_of(*indices)));
      Shape one = shape;
      for (int i = 0; i < one.rank(); i++) one[i] = 1;
      one.push_back(table.count());
      s.table = table.reshaped(one);
    } else {
      if (table.shape()[table.shape().rank() - 1] != 1) return otherwise;  // entries are vectors
      s.elements = *indices;
      s.table = table.reshaped(without_last(table.shape()));
    }
    return rounded();
  }
  const Tensor* elements = held_tensor(*v, parameters_);
  if (elements == nullptr) return otherwise;
  s.elements = *elements;
  return rounded();
}

}  // namespace moka::plan
