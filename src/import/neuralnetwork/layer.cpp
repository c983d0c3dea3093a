#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "format/model_file.h"
#include "import/neuralnetwork/network.h"
#include "ops/common/nn_weights.h"

namespace moka::import::nn {

std::string Layer::place() const { return cat("layer '", p.name(), "' (", type_, ")"); }
Error Layer::malformed(std::string_view what) const { return fail(ErrorCode::malformed, what); }
Error Layer::unsupported(std::string_view what) const { return fail(ErrorCode::unsupported, what); }

Status Layer::arity(int in_min, int in_max, int out_min, int out_max) const {
  auto range = [](int lo, int hi) { return lo == hi ? cat(lo) : cat(lo, " to ", hi); };
  if (inputs() < in_min || inputs() > in_max)
    return malformed(cat("expected ", range(in_min, in_max), " inputs, got ", inputs()));
  if (outputs() < out_min || outputs() > out_max)
    return malformed(cat("expected ", range(out_min, out_max), " outputs, got ", outputs()));
  return {};
}

Result<Blob*> Layer::blob(int i) {
  if (i >= inputs()) return malformed(cat("input ", i, " is missing"));
  auto it = net.blobs.find(p.input(i));
  if (it == net.blobs.end())
    return malformed(
        cat("input '", p.input(i), "' is neither an input of the model nor an output of an earlier layer"));
  if (!it->second.is_ranked())
    return unsupported(cat("input '", p.input(i), "': a blob whose rank is known only when it runs"));
  return &it->second;
}

Result<Value*> Layer::in(int i, Form form) {
  Blob* b = MOKA_TRY(blob(i));
  return MOKA_TRY_IN(net.as(*b, form), cat("input '", p.input(i), "'"));
}

Result<Form> Layer::cheap_form(int i) {
  Blob* b = MOKA_TRY(blob(i));
  for (Form f : {Form::matrix, Form::nchw, Form::exact})
    if (b->form(f) != nullptr) return f;
  return Form::exact;
}

Result<Form> Layer::common_form() {
  bool matrix = true, folded = true;
  Blob* first = MOKA_TRY(blob(0));
  for (int i = 0; i < inputs(); i++) {
    Blob* b = MOKA_TRY(blob(i));
    if (b->form(Form::matrix) == nullptr) matrix = false;
    if (b->rank() < 3 || b->rank() != first->rank()) folded = false;
    for (int d = 0; folded && d + 3 < b->rank(); d++) {
      const Dim& x = b->dims[static_cast<size_t>(d)];
      const Dim& y = first->dims[static_cast<size_t>(d)];
      bool same = x.known() ? x.size == y.size : !y.known() && x.from == y.from && x.axis == y.axis;
      if (!same) folded = false;
    }
  }
  if (!folded) return Form::exact;
  return matrix ? Form::matrix : Form::nchw;
}

Result<Value*> Layer::int32(int i) {
  Value* v = MOKA_TRY(in(i));
  if (v->type.dtype() == DType::int32) return v;
  return op("cast", {{"x", v}, {"dtype", "int32"}});
}

Result<Value*> Layer::int32_vector(int i) {
  if (const Value* fixed = MOKA_TRY(in(i)); fixed->constant() != nullptr && fixed->type.is_tensor()) {
    const ir::TensorView numbers = fixed->constant()->tensor.view();
    if (numbers.count() > 2 * ir::kMaxRank)
      return malformed(cat("input '", p.input(i), "': ", numbers.count(), " numbers"));
    std::vector<int64_t> entries;
    for (int64_t k = 0; k < numbers.count(); ++k) entries.push_back(ir::load_i64(numbers, k));
    return constant(Tensor::i32(entries), cat("input", i));
  }
  Value* v = MOKA_TRY(int32(i));
  if (!v->type.is_ranked() || v->type.rank() == 1) return v;
  const int64_t n = v->type.is_concrete() ? v->type.shape().count() : -1;
  return op("reshape", {{"x", v}, {"shape", Ints{n}}});
}

Result<Value*> Layer::channels(int i) {
  const int rank = MOKA_TRY(blob(i))->rank();
  if (rank >= 3) return nchw(i);
  return op("expand_dims", {{"x", MOKA_TRY(in(i))}, {"axes", rank == 2 ? Ints{2, 3} : Ints{0, 2, 3}}});
}

Status Layer::set_channels(int i, Value* v) {
  const int rank = MOKA_TRY(blob(0))->rank();
  if (rank >= 3) return set(i, v, Form::nchw);
  return set(i, MOKA_TRY(op("squeeze", {{"x", v}, {"axes", rank == 2 ? Ints{2, 3} : Ints{0, 2, 3}}})));
}

Status Layer::set(int i, Value* v, Form form, int like) {
  std::vector<Dim> lead;
  if (form != Form::exact && inputs() > 0) lead = MOKA_TRY(blob(like))->lead();
  return set_folded(i, v, form, std::move(lead));
}

Status Layer::set_folded(int i, Value* v, Form form, std::vector<Dim> lead) {
  if (i >= outputs()) return {};
  if (v->type.is_tensor() && v->type.dtype() != DType::fp32) v = MOKA_TRY(f32(v));
  const bool scalar = form == Form::exact && v->type.is_tensor() && v->type.is_ranked() && v->type.rank() == 0;
  if (scalar) v = MOKA_TRY(op("expand_dims", {{"x", v}, {"axes", Ints{0}}}));
  Blob b = MOKA_TRY(net.blob(v, form, std::move(lead)));
  b.scalar = scalar;
  const std::string& name = p.output(i);
  bool passed_on = v->producer() == nullptr;
  for (const std::string& input : p.input())
    if (auto it = net.blobs.find(input); it != net.blobs.end())
      for (const Value* f : it->second.forms) passed_on |= f == v;
  if (!passed_on) v->name = net.builder().function().unique_name(identifier(net.context().prefix + name));
  net.blobs[name] = std::move(b);
  return {};
}

Result<Value*> Layer::op(std::string_view op, std::vector<NamedArg> args, const ir::Type* declared) {
  return net.op(op, std::move(args), p.name(), declared);
}

Result<ir::Op*> Layer::multi(std::string_view op, std::vector<NamedArg> args) {
  return net.builder().append({op, std::move(args), net.context().prefix + p.name(), {}, {}});
}

Result<Value*> Layer::constant(Tensor t, std::string_view what) {
  return net.constant(std::move(t), cat(p.name(), "_", what));
}

Result<Value*> Layer::fp32_constant(std::initializer_list<float> values, const Shape& shape, std::string_view what) {
  return constant(Tensor::f32(shape, std::span(values.begin(), values.size())), what);
}

Result<Shape> Layer::shape(std::initializer_list<uint64_t> dims, std::string_view what) {
  Shape s;
  for (uint64_t d : dims) {
    if (d == 0 || d > (uint64_t{1} << 31)) return malformed(cat(what, ": a dimension of ", d));
    s.push_back(static_cast<int64_t>(d));
  }
  MOKA_TRY_IN(s.checked_count(), what);
  return s;
}

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
  uint64_t expected = 0;
  switch (p.data.kind) {
    case Kind::none: return l.malformed(cat(what, ": expected ", n, " numbers, got none"));
    case Kind::float32: expected = static_cast<uint64_t>(n) * 4; break;
    case Kind::float16: expected = static_cast<uint64_t>(n) * 2; break;
    case Kind::raw:
    case Kind::int8_raw: {
      uint64_t bits = p.data.kind == Kind::int8_raw ? 8 : w.quantization().numberofbits();
      if (bits < 1 || bits > 8)
        return l.malformed(cat(what, ": expected 1 to 8 bits for a quantised weight, got ", bits));
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
    return l.malformed(cat(what, ": expected 1 or ", channels, " values of quantisation, got ", f.size()));
  return std::vector<float>(f.begin(), f.end());
}

struct Quantisation {
  std::vector<float> scale, bias, lut;
};

Result<Quantisation> quantisation(const Layer& l, const proto::WeightParams& w, int bits, int64_t channels,
                                  std::string_view what) {
  Quantisation q;
  const auto& m = w.quantization();
  if (m.has_lookuptablequantization()) {
    const auto& f = m.lookuptablequantization().floatvalue();
    if (f.size() != 1 << bits)
      return l.malformed(cat(what, ": expected a table of ", 1 << bits, " numbers, got ", f.size()));
    q.lut.assign(f.begin(), f.end());
  } else if (m.has_linearquantization()) {
    q.scale = MOKA_TRY(table(l, m.linearquantization().scale(), channels, what));
    q.bias = MOKA_TRY(table(l, m.linearquantization().bias(), channels, what));
    if (q.scale.empty()) return l.malformed(cat(what, ": linear quantisation without a scale"));
  } else {
    return l.unsupported(cat(what, ": raw bytes without quantisation"));
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

Result<Value*> Layer::weight(const proto::WeightParams& w, const Shape& shape, std::string_view what,
                             int channel_axis) {
  using Kind = format::WeightData::Kind;
  Payload d = MOKA_TRY(payload(*this, w, shape, what));
  if (d.data.kind == Kind::float32 || d.data.kind == Kind::float16) {
    DType stored = d.data.kind == Kind::float32 ? DType::fp32 : DType::fp16;
    if (is_unaligned(d.data.bytes, stored) && d.data.bytes.size() > kSmallWeight && shape.count() > 0) {
      Tensor t = MOKA_TRY(
          tensor_of(*this, DType::uint8, Shape{static_cast<int64_t>(d.data.bytes.size())}, d.data.bytes, what));
      return net.op("nn_weight_bytes",
                    {{"data", t}, {"shape", Tensor::i32(shape.dims())}, {"dtype", std::string(to_string(stored))}},
                    cat(p.name(), "_", what));
    }
  }
  if (d.data.kind == Kind::float32)
    return constant(MOKA_TRY(tensor_of(*this, DType::fp32, shape, d.data.bytes, what)), what);
  std::string name = cat(p.name(), "_", what);
  if (d.data.kind == Kind::float16) {
    Tensor t = MOKA_TRY(tensor_of(*this, DType::fp16, shape, d.data.bytes, what));
    return net.op("constexpr_cast", {{"source_val", t}, {"output_dtype", "fp32"}}, name);
  }
  Quantisation q = MOKA_TRY(quantisation(*this, w, d.bits, shape[channel_axis], what));
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
  Quantisation q = MOKA_TRY(quantisation(*this, w, d.bits, shape[channel_axis], what));
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
  uint64_t bits = d.kind == Kind::int8_raw ? 8 : w.quantization().numberofbits();
  if (bits < 1 || bits > 8) return malformed(cat(what, ": expected 1 to 8 bits for a quantised weight, got ", bits));
  return static_cast<int64_t>(d.bytes.size() * 8 / bits);
}

}  // namespace moka::import::nn
