// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/half.h"
#include "format/model_file.h"
#include "import/neuralnetwork/network.h"
#include "ops/common/nn_weights.h"

namespace moka::import::nn {

namespace {

struct Payload {
  format::WeightData data;
  int bits = 0;  ///< bit width of quantized numbers
};

Result<Payload> payload(const Layer& l, const proto::WeightParams& w, const Shape& shape, std::string_view what) {
  using Kind = format::WeightData::Kind;
  Payload p;
  p.data = MOKA_TRY(l.net.context().file.weight_data(w));
  int64_t n = MOKA_TRY(shape.checked_count());
  if (p.data.kind == Kind::raw && !w.has_quantization()) {
    // Raw bytes without a description are floats, in single or half precision as their number says.
    const bool is_half = p.data.bytes.size() == static_cast<uint64_t>(n) * 2;
    if (!is_half && p.data.bytes.size() != static_cast<uint64_t>(n) * 4)
      return l.malformed(cat(what, ": expected ", 4 * n, " or ", 2 * n, " raw bytes for shape ", shape, ", got ",
                             p.data.bytes.size()));
    p.data.kind = is_half ? Kind::float16 : Kind::float32;
  }
  uint64_t expected = 0;
  switch (p.data.kind) {
    case Kind::none: return l.malformed(cat(what, ": expected ", n, " numbers, got none"));
    case Kind::float32: expected = static_cast<uint64_t>(n) * 4; break;
    case Kind::float16: expected = static_cast<uint64_t>(n) * 2; break;
    case Kind::raw:
    case Kind::int8_raw: {
      uint64_t bits = p.data.kind == Kind::int8_raw ? 8 : w.quantization().numberofbits();
      if (bits < 1 || bits > 8)
        return l.malformed(cat(what, ": expected 1 to 8 bits for a quantized weight, got ", bits));
      p.bits = static_cast<int>(bits);
      expected = (static_cast<uint64_t>(n) * bits + 7) / 8;
      break;
    }
  }
  if (p.data.bytes.size() != expected)
    return l.malformed(cat(what, ": expected ", expected, " bytes for shape ", shape, ", got ", p.data.bytes.size()));
  return p;
}

Result<std::vector<float>> table(const Layer& l, const google::protobuf::RepeatedField<float>& f, int64_t channels,
                                 std::string_view what) {
  if (f.size() != 0 && f.size() != 1 && f.size() != channels)
    return l.malformed(cat(what, ": expected 1 or ", channels, " values of quantization, got ", f.size()));
  return std::vector<float>(f.begin(), f.end());
}

struct Quantization {
  std::vector<float> scale, bias, lut;
};

Result<Quantization> quantization(const Layer& l, const proto::WeightParams& w, int bits, int64_t channels,
                                  std::string_view what) {
  Quantization q;
  const auto& m = w.quantization();
  if (m.has_lookuptablequantization()) {
    const auto& f = m.lookuptablequantization().floatvalue();
    if (f.size() != 1 << bits)
      return l.malformed(cat(what, ": expected a table of ", 1 << bits, " numbers, got ", f.size()));
    q.lut.assign(f.begin(), f.end());
  } else if (m.has_linearquantization()) {
    q.scale = MOKA_TRY(table(l, m.linearquantization().scale(), channels, what));
    q.bias = MOKA_TRY(table(l, m.linearquantization().bias(), channels, what));
    if (q.scale.empty()) return l.malformed(cat(what, ": linear quantization without a scale"));
  } else {
    q.scale = {1};
  }
  return q;
}

Result<Tensor> own(const Layer& l, DType dtype, const Shape& shape, size_t bytes, std::string_view what) {
  if (const auto& budget = l.net.context().options.budget) MOKA_TRY(budget->take(bytes, what));
  return Tensor::zeros(dtype, shape);
}

/// Copying a smaller weight costs less than an operation.
constexpr size_t kSmallWeight = 4096;

bool is_unaligned(const Bytes& bytes, DType dtype) {
  return reinterpret_cast<uintptr_t>(bytes.data()) % (static_cast<size_t>(ir::bits(dtype)) / 8) != 0;
}

/// Shares the bytes of the file if they are aligned.
Result<Tensor> tensor_of(const Layer& l, DType dtype, const Shape& shape, const Bytes& bytes, std::string_view what) {
  if (!is_unaligned(bytes, dtype) && bytes.owner != nullptr) return Tensor::wrap(dtype, shape, bytes);
  Tensor t = MOKA_TRY(own(l, dtype, shape, bytes.size(), what));
  if (!bytes.empty()) std::memcpy(t.mutable_data(), bytes.data(), bytes.size());
  return t;
}

}  // namespace

Value* Layer::named(Value* v, std::string_view what) const {
  if (learning_ != nullptr) v->name = identifier(cat(net.context().prefix, own_name(), "_", what));
  return v;
}

Result<Value*> Layer::weight(const proto::WeightParams& w, const Shape& shape, std::string_view what,
                             int channel_axis) {
  using Kind = format::WeightData::Kind;
  Payload d = MOKA_TRY(payload(*this, w, shape, what));
  if (d.data.kind == Kind::float32 || d.data.kind == Kind::float16) {
    DType stored = d.data.kind == Kind::float32 ? DType::fp32 : DType::fp16;
    if (is_unaligned(d.data.bytes, stored) && d.data.bytes.size() > kSmallWeight && shape.count() > 0) {
      Tensor t = MOKA_TRY(
          tensor_of(*this, DType::uint8, Shape{static_cast<int64_t>(d.data.bytes.size())}, d.data.bytes, what));
      return named(MOKA_TRY(net.op(
                       "nn_weight_bytes",
                       {{"data", t}, {"shape", Tensor::i32(shape.dims())}, {"dtype", std::string(to_string(stored))}},
                       cat(own_name(), "_", what))),
                   what);
    }
  }
  std::string name = cat(own_name(), "_", what);
  if (d.data.kind == Kind::float32)
    return named(MOKA_TRY(net.constant(MOKA_TRY(tensor_of(*this, DType::fp32, shape, d.data.bytes, what)), name)),
                 what);
  if (d.data.kind == Kind::float16) {
    Tensor t = MOKA_TRY(tensor_of(*this, DType::fp16, shape, d.data.bytes, what));
    return named(MOKA_TRY(net.op("constexpr_cast", {{"source_val", t}, {"output_dtype", "fp32"}}, name)), what);
  }
  Quantization q = MOKA_TRY(quantization(*this, w, d.bits, shape[channel_axis], what));
  DType raw = d.data.kind == Kind::int8_raw ? DType::int8 : DType::uint8;
  Tensor t = MOKA_TRY(tensor_of(*this, raw, Shape{static_cast<int64_t>(d.data.bytes.size())}, d.data.bytes, what));
  std::vector<NamedArg> args{
      {"data", t}, {"shape", Tensor::i32(shape.dims())}, {"bits", d.bits}, {"axis", channel_axis}};
  auto list = [](const std::vector<float>& v) { return Tensor::f32(Shape{static_cast<int64_t>(v.size())}, v); };
  if (!q.scale.empty()) args.emplace_back("scale", list(q.scale));
  if (!q.bias.empty()) args.emplace_back("bias", list(q.bias));
  if (!q.lut.empty()) args.emplace_back("lut", list(q.lut));
  return net.op("nn_dequantize_weights", std::move(args), name);
}

Result<Tensor> Layer::numbers(const proto::WeightParams& w, const Shape& shape, std::string_view what,
                              int channel_axis) {
  using Kind = format::WeightData::Kind;
  Payload d = MOKA_TRY(payload(*this, w, shape, what));
  if (d.data.kind == Kind::float32) return tensor_of(*this, DType::fp32, shape, d.data.bytes, what);
  int64_t n = shape.count();
  Tensor t = MOKA_TRY(own(*this, DType::fp32, shape, static_cast<size_t>(n) * 4, what));
  auto out = t.mut<float>();
  if (d.data.kind == Kind::float16) {
    for (int64_t i = 0; i < n; i++) {
      uint16_t h;
      std::memcpy(&h, d.data.bytes.data() + 2 * i, 2);
      out[static_cast<size_t>(i)] = half::to_float(h);
    }
    return t;
  }
  Quantization q = MOKA_TRY(quantization(*this, w, d.bits, shape[channel_axis], what));
  ops::QuantizedWeights z;
  z.data = reinterpret_cast<const uint8_t*>(d.data.bytes.data());
  z.is_signed = d.data.kind == Kind::int8_raw;
  z.bits = d.bits;
  z.count = n;
  z.channels = shape[channel_axis];
  z.inner = shape.count(channel_axis + 1, shape.rank());
  z.scale = q.scale;
  z.bias = q.bias;
  z.lut = q.lut;
  ops::dequantize(z, out.data());
  return t;
}

Result<int64_t> Layer::count(const proto::WeightParams& w, std::string_view what) {
  using Kind = format::WeightData::Kind;
  format::WeightData d = MOKA_TRY(net.context().file.weight_data(w));
  switch (d.kind) {
    case Kind::float32: return static_cast<int64_t>(d.bytes.size() / 4);
    case Kind::float16: return static_cast<int64_t>(d.bytes.size() / 2);
    case Kind::none: return int64_t{0};
    default: break;
  }
  // Raw floats may be halves; their number follows from the shape.
  if (d.kind == Kind::raw && !w.has_quantization()) return static_cast<int64_t>(d.bytes.size() / 2);
  uint64_t bits = d.kind == Kind::int8_raw ? 8 : w.quantization().numberofbits();
  if (bits < 1 || bits > 8) return malformed(cat(what, ": expected 1 to 8 bits for a quantized weight, got ", bits));
  return static_cast<int64_t>(d.bytes.size() * 8 / bits);
}

}  // namespace moka::import::nn
