// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

constexpr int kHalfScales = 19;  ///< the opset whose DequantizeLinear takes float16 scales
constexpr int kBlocks = 21;      ///< the one whose DequantizeLinear takes blocks and int4

/// An attribute `axis` unless the scale is one number.
std::vector<ox::Attribute> axis_of(const ir::Shape& scale, int axis) {
  if (scale.rank() == 0) return {};
  return {attr("axis", axis)};
}

/// x dequantized. Scales of float16 need a newer opset, and conversions before it.
Name dequantized(Call& c, const Name& x, const ir::Tensor& scale, const Name& zero, std::vector<ox::Attribute> how) {
  if (scale.dtype() != DType::fp16 || c.wants(kHalfScales))
    return c.node("DequantizeLinear", {x, c.graph.tensor(scale), zero}, std::move(how));
  ir::Tensor wide = c.take(ir::Tensor::uninitialized(DType::fp32, scale.shape()));
  if (c.refused()) return {};
  for (int64_t i = 0; i < scale.count(); i++) ir::store_f64(wide.view(), i, ir::load_f64(scale.view(), i));
  return c.cast(c.node("DequantizeLinear", {x, c.graph.tensor(wide), zero}, std::move(how)), DType::fp16);
}

/// A constant as a tensor of the given dimensions, each repeated from one entry where it is larger.
ir::Tensor spread(Call& c, const ir::Tensor& from, const ir::Shape& to) {
  ir::Tensor out = c.take(ir::Tensor::uninitialized(from.dtype(), to));
  if (c.refused()) return out;
  for (int64_t i = 0; i < out.count(); i++) {
    int64_t rest = i, at = 0, step = 1;
    for (int d = to.rank() - 1; d >= 0; d--) {
      const int64_t p = rest % to[d], size = from.shape().rank() == 0 ? 1 : from.shape()[d];
      rest /= to[d];
      at += (size == 1 ? 0 : p * size / to[d]) * step;
      step *= size;
    }
    if (ir::is_float(from.dtype()))
      ir::store_f64(out.view(), i, ir::load_f64(from.view(), at));
    else
      ir::store_i64(out.view(), i, ir::load_i64(from.view(), at));
  }
  return out;
}

/// Writes the expanded weight.
void expanded(Call& c) {
  for (size_t i = 0; i < c.op.output_count(); i++) {
    const ir::Value* v = c.op.output(i);
    if (!v->is_used()) continue;
    const auto t = evaluated(v);
    if (!t) return c.refuse("its data cannot be expanded");
    c.set(c.graph.tensor(*t), i);
  }
}

void affine_dequantize(Call& c) {
  const auto data = c.constant("quantized_data"), zero = c.constant("zero_point"), scale = c.constant("scale");
  if (!data || !zero || !scale) return c.refuse("its data is not a constant");
  if (zero->dtype() != data->dtype()) return expanded(c);
  const int axis = c.axis("axis", data->shape().rank());
  ir::Tensor s = *scale, z = *zero;
  if (s.shape().rank() == 0 && z.shape().rank() != 0) s = spread(c, s, z.shape());
  if (z.shape().rank() == 0 && s.shape().rank() != 0) z = spread(c, z, s.shape());
  if (c.refused()) return;
  c.set(dequantized(c, c.graph.tensor(*data), s, c.graph.tensor(z), axis_of(s.shape(), axis)));
}

/// scale * (data - offset), one scale and offset per block.
void blockwise(Call& c) {
  const auto data = c.constant("data"), scale = c.constant("scale");
  if (!data || !scale) return c.refuse("its data is not a constant");
  const DType t = data->dtype();
  const bool four = t == DType::int4 || t == DType::uint4;
  const auto offset = c.has("offset") ? c.constant("offset") : std::nullopt;
  if ((t != DType::int8 && t != DType::uint8 && !four) || (offset && offset->dtype() != t)) return expanded(c);
  const ir::Shape &d = data->shape(), &s = scale->shape();
  int blocked = -1, whole = 0, last = -1;
  for (int i = 0; i < d.rank(); i++) {
    if (s[i] == 1) continue;
    last = i, whole++;
    if (s[i] == d[i]) continue;
    if (blocked >= 0) return expanded(c);
    blocked = i;
  }
  const auto per_entry = [&](const std::optional<ir::Tensor>& v, const ir::Shape& to) -> Name {
    return v ? c.graph.tensor(v->reshaped(to)) : Name();
  };
  if (blocked < 0 && whole <= 1) {
    if (four && !c.wants(kBlocks)) return expanded(c);
    const ir::Shape shape = whole == 0 ? ir::Shape() : ir::Shape{s[last]};
    return c.set(dequantized(c, c.graph.tensor(*data), scale->reshaped(shape), per_entry(offset, shape),
                             axis_of(shape, std::max(last, 0))));
  }
  if (!c.wants(kBlocks)) return expanded(c);
  if (blocked < 0) blocked = d.rank() - 1;
  ir::Shape full = d;
  full[blocked] = s[blocked];
  const ir::Tensor scales = spread(c, *scale, full);
  const Name offsets = offset ? c.graph.tensor(spread(c, *offset, full)) : Name();
  if (c.refused()) return;
  c.set(c.node("DequantizeLinear", {c.graph.tensor(*data), c.graph.tensor(scales), offsets},
               {attr("axis", blocked), attr("block_size", d[blocked] / s[blocked])}));
}

/// Values of a table. `indices`: integers below 256.
Name looked_up(Call& c, const ir::Tensor& table, const Name& indices, const Name& first) {
  Name at = c.cast(indices, DType::int32);
  if (!first.empty()) at = c.node("Add", {at, first});
  return c.node("Gather", {c.graph.tensor(table), at}, {attr("axis", 0)});
}

/// Palettes: of the whole weight, or of groups along one or more axes.
void lut_to_dense(Call& c) {
  const auto indices = c.constant("indices"), lut = c.constant("lut");
  if (!indices || !lut) return c.refuse("its data is not a constant");
  const ir::Type& dense = c.out();
  if (c.op.version().since < ir::Opset::ios18) {
    const int bits = std::countr_zero(static_cast<uint64_t>(lut->count()));
    ir::Tensor at = c.take(ir::Tensor::uninitialized(DType::uint8, dense.shape()));
    if (c.refused()) return;
    const auto bytes = indices->as<uint8_t>();
    const auto to = at.mut<uint8_t>();
    for (size_t i = 0; i < to.size(); i++) {
      const size_t bit = i * static_cast<size_t>(bits);
      unsigned word = bytes[bit / 8];
      if (bit / 8 + 1 < bytes.size()) word |= static_cast<unsigned>(bytes[bit / 8 + 1]) << 8;
      to[i] = static_cast<uint8_t>((word >> (bit % 8)) & ((1u << bits) - 1));
    }
    return c.set(looked_up(c, *lut, c.graph.tensor(at), {}));
  }
  const ir::Shape &d = indices->shape(), &s = lut->shape();
  const int rank = d.rank();
  const int64_t entries = s[rank], vector = s[rank + 1];
  if (vector != 1) return expanded(c);
  ir::Shape groups;
  bool several = false;
  for (int i = 0; i < rank; i++) {
    groups.push_back(s[i] == 1 ? 1 : d[i]);
    several |= s[i] != 1;
  }
  Name first;
  if (several) {
    ir::Tensor offsets = c.take(ir::Tensor::uninitialized(DType::int32, groups));
    if (c.refused()) return;
    for (int64_t i = 0; i < offsets.count(); i++) {
      int64_t rest = i, at = 0, step = entries;
      for (int a = rank - 1; a >= 0; a--) {
        at += (s[a] == 1 ? 0 : rest % groups[a] * s[a] / groups[a]) * step;
        rest /= groups[a];
        step *= s[a];
      }
      ir::store_i64(offsets.view(), i, at);
    }
    first = c.graph.tensor(offsets);
  }
  // Four bits stay four bits where the model may use them.
  ir::Tensor at = *indices;
  if (at.dtype() == DType::uint4 && c.graph.opset() < kBlocks) {
    at = c.take(ir::Tensor::uninitialized(DType::uint8, d));
    for (int64_t i = 0; i < at.count() && !c.refused(); i++)
      ir::store_i64(at.view(), i, ir::load_i64(indices->view(), i));
  }
  c.set(looked_up(c, lut->reshaped({lut->count()}), c.graph.tensor(at), first));
}

void constexpr_cast(Call& c) {
  const auto v = c.constant("source_val");
  if (!v) return c.refuse("its data is not a constant");
  c.set(c.cast(c.graph.tensor(*v), c.out().dtype()));
}

/// The integers of a neural network's weight, packed from the highest bit down, as bytes.
ir::Tensor unpacked(Call& c, const ir::Tensor& data, int bits) {
  ir::Tensor out = c.take(ir::Tensor::uninitialized(data.dtype(), c.out().shape()));
  if (c.refused() || bits == 8) return c.refused() ? out : data.reshaped(c.out().shape());
  const auto* bytes = static_cast<const uint8_t*>(data.data());
  auto* to = static_cast<uint8_t*>(out.mutable_data());
  for (int64_t i = 0; i < out.count(); i++) {
    unsigned v = 0;
    for (int b = 0; b < bits; b++) {
      const int64_t at = i * bits + b;
      v = 2 * v + ((bytes[at / 8] >> (7 - at % 8)) & 1u);
    }
    to[i] = static_cast<uint8_t>(v);
  }
  return out;
}

void nn_dequantize(Call& c) {
  const auto data = c.constant("data");
  const auto lut = c.has("lut") ? c.constant("lut") : std::nullopt;
  const auto scale = c.has("scale") ? c.constant("scale") : std::nullopt;
  const auto bias = c.has("bias") ? c.constant("bias") : std::nullopt;
  if (!data) return c.refuse("its data is not a constant");
  const Name q = c.graph.tensor(unpacked(c, *data, static_cast<int>(c.integer("bits"))));
  if (c.refused()) return;
  if (lut) return c.set(looked_up(c, *lut, q, {}));
  const int rank = c.out().rank(), axis = c.axis("axis", std::max(rank, 1));
  const auto channels = [&](const ir::Tensor& t) {
    if (t.count() == 1) return c.graph.tensor(t.reshaped({}));
    ir::Shape s;
    for (int i = axis; i < rank; i++) s.push_back(i == axis ? t.count() : 1);
    return c.graph.tensor(t.reshaped(s));
  };
  Name y = c.cast(q, DType::fp32);
  if (scale) y = c.node("Mul", {y, channels(*scale)});
  if (bias) y = c.node("Add", {y, channels(*bias)});
  c.set(y);
}

/// quantize and dequantize, per tensor or per entry of an axis.
void quantized_linear(Call& c) {
  const bool forward = c.op.type_name() == "quantize";
  const auto scale = c.constant("scale");
  if (!scale) return c.refuse("its scale is not a constant");
  const auto zero = c.has("zero_point") ? c.constant("zero_point") : std::nullopt;
  const DType integers = forward ? c.out().dtype() : c.dtype("input");
  ir::Tensor z = zero ? *zero : c.take(ir::Tensor::zeros(integers, scale->shape()));
  if (c.refused()) return;
  std::vector<ox::Attribute> how;
  if (scale->shape().rank() > 0) how.push_back(attr("axis", c.has("axis") ? c.axis("axis", c.rank("input")) : 1));
  if (z.shape().rank() == 0 && scale->shape().rank() > 0) z = spread(c, z, scale->shape());
  const Name x = c.x("input");
  if (!forward) return c.set(dequantized(c, x, *scale, c.graph.tensor(z), std::move(how)));
  if (scale->dtype() == DType::fp16 && !c.needs(kHalfScales)) return;
  c.set(c.node("QuantizeLinear", {x, c.graph.tensor(*scale), c.graph.tensor(z)}, std::move(how)));
}

}  // namespace

std::span<const OpWriter> writers_quantization();
std::span<const OpWriter> writers_quantization() {
  static constexpr OpWriter list[] = {
      {"constexpr_affine_dequantize", affine_dequantize},
      {"constexpr_blockwise_shift_scale", blockwise},
      {"constexpr_lut_to_dense", lut_to_dense},
      {"constexpr_cast", constexpr_cast},
      {"constexpr_sparse_to_dense", expanded},
      {"constexpr_lut_to_sparse", expanded},
      {"constexpr_sparse_blockwise_shift_scale", expanded},
      {"nn_dequantize_weights", nn_dequantize},
      {"nn_weight_bytes", expanded},
      {"quantize", quantized_linear},
      {"dequantize", quantized_linear},
  };
  return list;
}

}  // namespace moka::compiler::onnx
