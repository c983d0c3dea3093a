// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "import/onnx/node.h"
#include "import/onnx/operators/window.h"

namespace moka::import::onnx {
namespace {

bool is_signed(DataType type) {
  return type == DataType::int8 || type == DataType::int16 || type == DataType::int4 || type == DataType::int2 ||
         type == DataType::int32;
}

/// The range of a quantized integer type.
std::pair<double, double> range_of(const Node& n, DataType type) {
  const unsigned bits = format::onnx::bits_of(type);
  if (bits == 0 || bits > 16) n.unsupported(cat("quantized values of type ", format::onnx::to_string(type)));
  const double size = std::ldexp(1.0, static_cast<int>(bits));
  return is_signed(type) ? std::pair{-size / 2, size / 2 - 1} : std::pair{0.0, size - 1};
}

/// A scale or zero point, shaped to broadcast over x: one number, one per entry of an axis, or one per block.
Value* spread(const Node& n, Value* v, const Value* x, int64_t axis, int64_t block) {
  if (n.rank(v) == 0) return v;
  if (n.rank(v) == 1 && n.rank(x) != 1 && block == 0) {
    if (v->type.shape()[0] == 1) return n.reshape(v, {});
    std::vector<int64_t> dims(static_cast<size_t>(n.rank(x)), 1);
    dims[static_cast<size_t>(axis)] = -1;
    return n.reshape(v, dims);
  }
  if (block == 0) return v;
  if (block < 0 || n.rank(v) != n.rank(x)) n.malformed(cat("blocks of ", block, " with a scale of type ", v->type));
  // Each entry along the axis stands for a block of neighbors.
  const Shape &s = n.known_shape(v, "blockwise quantization"), &whole = n.known_shape(x, "blockwise quantization");
  std::vector<int64_t> at;
  for (int64_t i = 0; i < whole[static_cast<int>(axis)]; ++i)
    at.push_back(std::min(i / block, s[static_cast<int>(axis)] - 1));
  return n.op("gather", {{"x", v}, {"indices", Tensor::i32(at)}, {"axis", static_cast<int>(axis)}});
}

Value* quantized(const Node& n, Value* x, Value* scale, Value* zero, DataType to) {
  const auto [low, high] = range_of(n, to);
  Value* v = n.unary("round", n.div(n.cast(x, scale->type.dtype()), scale));
  if (zero != nullptr) v = n.add(v, n.cast(zero, v->type.dtype()));
  v = n.op("clip", {{"x", v}, n.arg("alpha", low, v), n.arg("beta", high, v)});
  return n.cast(v, DType::int32);
}

Value* dequantized(const Node& n, Value* x, Value* scale, Value* zero) {
  if (zero != nullptr)
    x = x->type.dtype() == DType::int32 && zero->type.dtype() == DType::int32
            ? n.sub(x, zero)
            : n.sub(n.cast(x, scale->type.dtype()), n.cast(zero, scale->type.dtype()));
  return n.mul(n.cast(x, scale->type.dtype()), scale);
}

DataType quantized_type(const Node& n) {
  if (n.has(2)) return n.type(2);
  const auto given = static_cast<DataType>(n.integer_or("output_dtype", 0));
  return given == DataType::undefined ? DataType::uint8 : given;
}

void quantize_linear(Node& n) {
  Value* x = n.in(0);
  const DataType to = quantized_type(n);
  const int64_t block = n.integer_or("block_size", 0);
  const int64_t axis = n.rank(n.in(1)) == 0 ? 0 : n.rank(x) == 0 ? 0 : n.axis(n.integer_or("axis", 1), x);
  Value* scale = spread(n, n.in(1), x, axis, block);
  Value* zero = n.has(2) ? spread(n, n.in(2), x, axis, block) : nullptr;
  if (is_float(to)) n.unsupported(cat("quantized values of type ", format::onnx::to_string(to)));
  if (computed_as(to) == DType::fp32) {  // of 8 and fewer bits
    Value* v = n.div(n.cast(x, scale->type.dtype()), scale);
    if (zero != nullptr) v = n.add(v, n.cast(zero, v->type.dtype()));
    return n.set(0, converted_to(n, v, to, n.integer_or("saturate", 1) != 0), to);
  }
  n.set(0, quantized(n, x, scale, zero, to), to);
}

DType packed_as(DataType type) {
  switch (type) {
    case DataType::int4: return DType::int4;
    case DataType::uint4: return DType::uint4;
    case DataType::int8: return DType::int8;
    case DataType::uint8: return DType::uint8;
    default: return DType::none;
  }
}

/// Constant weights stay quantized: Core ML expands them when the model is loaded. Null: not of that form.
Value* compressed(const Node& n, int64_t axis, int64_t block) {
  constexpr int64_t few = 64;
  const Item& data = n.item(0);
  const Tensor *scale = n.constant(1), *zero = n.has(2) ? n.constant(2) : nullptr;
  const DType stored = packed_as(data.type);
  if (!data.is_constant() || data.tensor.dtype() != stored || stored == DType::none || scale == nullptr ||
      (n.has(2) && zero == nullptr))
    return nullptr;
  const Shape& s = data.tensor.shape();
  const DType out = scale->dtype();
  if (data.tensor.count() < few || s.rank() == 0 || (out != DType::fp32 && out != DType::fp16)) return nullptr;
  const bool per_axis = scale->shape().rank() == 1 && scale->count() == s[static_cast<int>(axis)] && block == 0;
  const bool whole = scale->count() == 1;
  const ir::Opset opset = n.scope.builder.opset;
  const bool bytes = stored == DType::int8 || stored == DType::uint8;
  if (bytes && (per_axis || whole) && opset < ir::Opset::ios18) {
    std::vector<NamedArg> args{{"quantized_data", data.tensor}};
    args.emplace_back("scale", whole ? scale->reshaped(Shape()) : *scale);
    Tensor none = need(Tensor::zeros(stored, whole ? Shape() : scale->shape()));
    args.emplace_back("zero_point",
                      zero != nullptr ? converted(whole ? zero->reshaped(Shape()) : *zero, stored) : none);
    args.emplace_back("axis", static_cast<int>(axis));
    return n.op("constexpr_affine_dequantize", std::move(args));
  }
  if (opset < ir::Opset::ios18) return nullptr;
  Shape blocks = s;
  for (int i = 0; i < s.rank(); ++i) blocks[i] = 1;
  if (per_axis) blocks[static_cast<int>(axis)] = s[static_cast<int>(axis)];
  if (block != 0) blocks = scale->shape();
  if (!per_axis && !whole && block == 0) return nullptr;
  for (int i = 0; i < s.rank(); ++i)
    if (blocks.rank() != s.rank() || blocks[i] < 1 || s[i] % blocks[i] != 0) return nullptr;
  std::vector<NamedArg> args{{"data", data.tensor}};
  args.emplace_back("scale", scale->reshaped(blocks));
  if (zero != nullptr) args.emplace_back("offset", converted(*zero, stored).reshaped(blocks));
  return n.op("constexpr_blockwise_shift_scale", std::move(args));
}

void dequantize_linear(Node& n) {
  const int64_t block = n.integer_or("block_size", 0);
  const auto axis_of = [&](int rank) {
    return n.rank(n.in(1)) == 0 || rank == 0 ? int64_t{0} : need(ir::normalize_axis(n.integer_or("axis", 1), rank));
  };
  const auto type = static_cast<DataType>(n.integer_or("output_dtype", static_cast<int64_t>(n.type(1))));
  const DataType to = type == DataType::undefined ? n.type(1) : type;
  if (n.item(0).is_constant()) {
    if (Value* v = compressed(n, axis_of(n.item(0).tensor.shape().rank()), block))
      return n.set(0, n.cast(v, computed_as(to)), to);
  }
  Value* x = n.in(0);
  const int64_t axis = axis_of(n.rank(x));
  Value* scale = spread(n, n.in(1), x, axis, block);
  Value* zero = n.has(2) ? spread(n, n.in(2), x, axis, block) : nullptr;
  n.set(0, n.cast(dequantized(n, x, scale, zero), computed_as(to)), to);
}

void dynamic_quantize_linear(Node& n) {
  Value* x = n.in(0);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < n.rank(x); ++i) axes.push_back(i);
  Value* zero = n.scalar(0, x);
  Value* low = n.binary("minimum", n.reduce("reduce_min", x, axes, false), zero);
  Value* high = n.binary("maximum", n.reduce("reduce_max", x, axes, false), zero);
  Value* scale = n.div(n.sub(high, low), n.scalar(255, x));
  Value* point = n.unary(
      "round", n.op("clip", {{"x", n.div(n.sub(zero, low), scale)}, n.arg("alpha", 0, x), n.arg("beta", 255, x)}));
  n.set(0, quantized(n, x, scale, n.cast(point, DType::int32), DataType::uint8), DataType::uint8);
  n.set(1, scale, n.type());
  n.set(2, n.cast(point, DType::int32), DataType::uint8);
}

/// The inputs of a quantized operator from `i` on: values, scale, zero point.
Value* real(const Node& n, size_t i, int64_t axis) {
  Value* x = n.in(i);
  return dequantized(n, x, spread(n, n.in(i + 1), x, axis, 0),
                     n.has(i + 2) ? spread(n, n.in(i + 2), x, axis, 0) : nullptr);
}

void set_quantized(Node& n, Value* v, size_t scale) {
  n.set(0, quantized(n, v, n.in(scale), n.has(scale + 1) ? n.in(scale + 1) : nullptr, n.type(scale + 1)),
        n.type(scale + 1));
}

void qlinear_matmul(Node& n) {
  // A scale for each row of a, and each column of b.
  const auto side = [&](size_t i, bool rows) {
    Value* x = n.in(i);
    const auto shaped = [&](Value* v) {
      return n.rank(v) == 1 && rows && v->type.shape()[0] != 1 ? n.expand_dims(v, {1}) : v;
    };
    return dequantized(n, x, shaped(n.in(i + 1)), shaped(n.in(i + 2)));
  };
  set_quantized(n, n.matmul(side(0, true), side(3, false)), 6);
}

void qlinear_conv(Node& n) {
  Value *x = real(n, 0, 1), *weight = real(n, 3, 0);
  Value* v = convolution(n, x, weight, nullptr);
  if (n.has(8)) v = with_bias(n, v, n.mul(n.cast(n.in(8), n.in(1)->type.dtype()), n.mul(n.in(1), n.in(4))));
  set_quantized(n, v, 6);
}

/// Sums of products of integers, exact in float32 below 2^24.
void conv_integer(Node& n) {
  const auto centered = [&](size_t i) {
    Value* x = n.cast(n.in(i), DType::fp32);
    return n.has(i + 2) ? n.sub(x, spread(n, n.cast(n.in(i + 2), DType::fp32), x, 0, 0)) : x;
  };
  Value *x = centered(0), *weight = centered(1);
  n.set(0, n.cast(n.unary("round", convolution(n, x, weight, nullptr)), DType::int32), DataType::int32);
}

/// com.microsoft: QLinearAdd and QLinearMul.
void qlinear_binary(Node& n, std::string_view op) { set_quantized(n, n.binary(op, real(n, 0, 0), real(n, 3, 0)), 6); }

void qlinear_sigmoid(Node& n) { set_quantized(n, n.unary("sigmoid", real(n, 0, 0)), 3); }

void qlinear_global_average_pool(Node& n) {
  Value* x = real(n, 0, 0);
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < n.rank(x); ++i) axes.push_back(i);
  set_quantized(n, n.reduce("reduce_mean", x, axes, true), 3);
}

/// Whether g_idx, the block of each of the K numbers of a row, says what block_size says.
bool are_blocks_in_order(const Node& n, int64_t k, int64_t block) {
  const std::vector<int64_t> blocks = n.integers(4, "g_idx");
  if (static_cast<int64_t>(blocks.size()) < k) n.malformed(cat(blocks.size(), " elements of g_idx for K of ", k));
  for (int64_t i = 0; i < k; ++i)
    if (blocks[static_cast<size_t>(i)] != i / block) return false;
  return true;
}

/// com.microsoft.MatMulNBits: a weight of N rows of K numbers in blocks, each with a scale and a zero point.
void matmul_n_bits(Node& n) {
  const int64_t k = n.integer_or("K", 0), rows = n.integer_or("N", 0), bits = n.integer_or("bits", 4),
                block = n.integer_or("block_size", 32);
  const Tensor *packed = n.constant(1), *scales = n.constant(2), *zeros = n.has(3) ? n.constant(3) : nullptr;
  if (packed == nullptr || scales == nullptr || (bits != 4 && bits != 8))
    n.unsupported(cat("weights of ", bits, " bits, or computed ones"));
  if (k < 1 || rows < 1 || block < 1) n.malformed("K, N or block_size is missing");
  if (n.has(4) && !are_blocks_in_order(n, k, block))
    n.unsupported("g_idx (input 4) that gives columns the scales of other blocks");
  const int64_t blocks = (k + block - 1) / block, bytes_per_row = blocks * block * bits / 8;
  if (k % block != 0) n.unsupported(cat("K of ", k, " in blocks of ", block));
  if (packed->count() != rows * bytes_per_row || scales->count() != rows * blocks || packed->dtype() != DType::uint8)
    n.malformed("the weight does not have N * K elements");
  const DType stored = bits == 4 ? DType::uint4 : DType::uint8;
  const Bytes raw{{static_cast<const std::byte*>(packed->data()), packed->bytes()}, packed->owner()};
  const Tensor data = need(Tensor::wrap(stored, Shape{rows, k}, raw));
  Tensor offset = need(Tensor::zeros(stored, Shape{rows, blocks}));
  const double middle = bits == 4 ? 8 : 128;
  for (int64_t i = 0; i < rows * blocks; ++i) {
    double v = middle;
    if (zeros != nullptr && zeros->dtype() == DType::uint8) {
      const int64_t row = i / blocks, at = i % blocks, width = (blocks * bits + 7) / 8;
      const auto byte =
          static_cast<unsigned>(zeros->as<uint8_t>()[static_cast<size_t>(row * width + (bits == 4 ? at / 2 : at))]);
      v = bits == 4 ? (at % 2 == 0 ? byte & 15u : byte >> 4u) : byte;
    } else if (zeros != nullptr) {
      n.unsupported("zero points that are not packed integers");
    }
    ir::store_f64(offset.view(), i, v);
  }
  Value* x = n.in(0);
  if (n.scope.builder.opset < ir::Opset::ios18) n.unsupported("weights of 4 bits before opset ios18");
  Value* weight = n.op("constexpr_blockwise_shift_scale",
                       {{"data", data},
                        {"scale", converted(*scales, x->type.dtype()).reshaped(Shape{rows, blocks})},
                        {"offset", offset}});
  Value* out = n.matmul(x, weight, false, true);
  n.set(0, n.has(5) ? n.add(out, n.in(5)) : out);
}

constexpr OperatorImport kQuantizationOperators[] = {
    {"QuantizeLinear", quantize_linear},
    {"DequantizeLinear", dequantize_linear},
    {"QuantizeLinear", quantize_linear, "com.microsoft"},
    {"DequantizeLinear", dequantize_linear, "com.microsoft"},
    {"DynamicQuantizeLinear", dynamic_quantize_linear},
    {"QLinearMatMul", qlinear_matmul},
    {"QLinearConv", qlinear_conv},
    {"ConvInteger", conv_integer},
    {"QLinearAdd", [](Node& n) { qlinear_binary(n, "add"); }, "com.microsoft"},
    {"QLinearMul", [](Node& n) { qlinear_binary(n, "mul"); }, "com.microsoft"},
    {"QLinearSigmoid", qlinear_sigmoid, "com.microsoft"},
    {"QLinearGlobalAveragePool", qlinear_global_average_pool, "com.microsoft"},
    {"MatMulNBits", matmul_n_bits, "com.microsoft"},
};

}  // namespace

std::span<const OperatorImport> operators_quantization() { return kQuantizationOperators; }

}  // namespace moka::import::onnx
