// SPDX-License-Identifier: Apache-2.0
#include "diff/constants.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "ir/text_value.h"
#include "passes/rewrite.h"

namespace moka::diff {
namespace {

constexpr size_t kMostBytes = size_t{4} << 30;
constexpr int64_t kShort = 16;         ///< elements of a parameter; more make a weight
constexpr int64_t kSampled = 256;      ///< elements
constexpr size_t kLongest = 200;       ///< characters
constexpr double kHalfStep = 0x1p-11;  ///< relative rounding error of float16
constexpr double kHalfLeast = 0x1p-24;
constexpr double kCompressed = 0.01;  ///< noise over signal
constexpr double kRounded = 1e-3;

bool is_text(const ir::Tensor& t) { return t.dtype() == ir::DType::string; }

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

std::vector<int64_t> place_of(const ir::Shape& shape, int64_t index) {
  std::vector<int64_t> out(static_cast<size_t>(shape.rank()));
  for (int d = shape.rank() - 1; d >= 0; --d) {
    out[static_cast<size_t>(d)] = index % shape[d];
    index /= shape[d];
  }
  return out;
}

NumberDifference numbers_of(const ir::Tensor& a, const ir::Tensor& b) {
  NumberDifference out;
  out.elements = a.count();
  const ir::TensorView x = a.view(), y = b.view();
  double signal = 0, noise = 0;
  int64_t largest = -1, unlike = -1;
  out.is_rounding = true;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double u = ir::load_f64(x, i), v = ir::load_f64(y, i);
    if (u == v || (std::isnan(u) && std::isnan(v))) {
      if (std::isfinite(u)) signal += u * u;
      continue;
    }
    ++out.different;
    if (!std::isfinite(u) || !std::isfinite(v)) {
      if (unlike < 0) unlike = i;
      ++out.unlike;
      out.is_rounding = false;
      continue;
    }
    const double error = std::abs(u - v);
    signal += u * u;
    noise += error * error;
    if (error > std::max(kHalfLeast, kHalfStep * std::max(std::abs(u), std::abs(v)))) out.is_rounding = false;
    if (largest < 0 || error > out.largest) {
      out.largest = error;
      largest = i;
    }
  }
  if (noise > 0) out.snr = signal > 0 ? 10 * std::log10(signal / noise) : -INFINITY;
  if (const int64_t i = unlike >= 0 ? unlike : largest; i >= 0) {
    out.at = place_of(a.shape(), i);
    out.first = ir::load_f64(x, i);
    out.second = ir::load_f64(y, i);
  }
  return out;
}

}  // namespace

std::optional<ir::Tensor> tensor_of(const ir::Value& value) { return passes::constant_value(value, kMostBytes); }

std::string text_of(const ir::Tensor& tensor) {
  const int64_t count = tensor.count();
  if (count > kShort) {
    std::string out = cat(ir::to_string(tensor.dtype()));
    for (int i = 0; i < tensor.shape().rank(); ++i) out += cat(i == 0 ? " " : " x ", tensor.shape()[i]);
    return out;
  }
  std::string out;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) out += ", ";
    if (is_text(tensor))
      out += cat('"', static_cast<const std::string*>(tensor.data())[i], '"');
    else if (tensor.dtype() == ir::DType::boolean)
      out += ir::load_i64(tensor.view(), i) != 0 ? "true" : "false";
    else
      out += number(ir::load_f64(tensor.view(), i));
  }
  return tensor.shape().rank() == 0 ? out : "[" + out + "]";
}

std::string list_text(const ir::Constant& constant) {
  std::string out;
  ir::append_value(out, constant, ir::Dialect::bare_scalars);
  if (out.size() > kLongest) out.replace(kLongest, std::string::npos, "...");
  return out;
}

Sample sample_of(const ir::Tensor& tensor) {
  Sample out;
  out.count = tensor.count();
  if (is_text(tensor)) {
    for (int64_t i = 0; i < out.count; ++i) out.text += static_cast<const std::string*>(tensor.data())[i] + '\n';
    return out;
  }
  const int64_t step = std::max<int64_t>(1, out.count / kSampled);
  for (int64_t i = 0; i < out.count; i += step) out.elements.push_back(ir::load_f64(tensor.view(), i));
  return out;
}

bool resembles(const Sample& a, const Sample& b) {
  if (a.count != b.count || a.text != b.text || a.elements.size() != b.elements.size()) return false;
  double signal = 0, noise = 0;
  for (size_t i = 0; i < a.elements.size(); ++i) {
    const double u = a.elements[i], v = b.elements[i];
    if (u == v || !std::isfinite(u) || !std::isfinite(v)) continue;
    if (a.count <= kShort && std::abs(u - v) > kRounded * std::abs(u)) return false;
    noise += (u - v) * (u - v);
  }
  if (noise == 0) return true;
  for (const double u : a.elements)
    if (std::isfinite(u)) signal += u * u;
  return noise <= kCompressed * signal;
}

std::optional<ModelComparison::Difference> difference_of(const ir::Tensor* a, const ir::Tensor* b) {
  ModelComparison::Difference out;
  if (a != nullptr) out.first = text_of(*a);
  if (b != nullptr) out.second = text_of(*b);
  const int64_t count = std::max(a != nullptr ? a->count() : 0, b != nullptr ? b->count() : 0);
  out.kind = count > kShort ? ModelComparison::Kind::weight : ModelComparison::Kind::parameter;
  if (a == nullptr || b == nullptr) return a == b ? std::nullopt : std::optional(out);
  if (*a == *b) return std::nullopt;
  if (!(a->shape() == b->shape()) || is_text(*a) != is_text(*b) || is_text(*a)) return out;
  out.numbers = numbers_of(*a, *b);
  if (out.numbers->different > 0) return out;
  if (a->dtype() == b->dtype()) return std::nullopt;  // such as 0 and -0
  // The element types of parameters follow those of the values.
  if (out.kind == ModelComparison::Kind::parameter) return std::nullopt;
  out.kind = ModelComparison::Kind::element;
  return out;
}

std::string form_of(const ir::Value& value) {
  static constexpr std::pair<std::string_view, std::string_view> forms[] = {
      {"constexpr_lut_to_dense", "palette"},
      {"constexpr_affine_dequantize", "linear"},
      {"constexpr_blockwise_shift_scale", "linear"},
      {"constexpr_sparse_to_dense", "sparse"},
      {"constexpr_lut_to_sparse", "palette"},
      {"constexpr_sparse_blockwise_shift_scale", "linear"},
      {"constexpr_cast", "cast"},
  };
  const ir::Op* op = value.producer();
  if (op == nullptr) return "";
  for (const auto& [type, form] : forms) {
    if (op->type_name() != type) continue;
    const ir::Value* table = op->input("lut");
    int bits = 0;
    for (const char* parameter : {"indices", "data", "quantized_data", "indices_nonzero_data", "nonzero_data"})
      if (const ir::Value* v = op->input(parameter); bits == 0 && v != nullptr && v->type.is_tensor())
        bits = static_cast<int>(ir::bits(v->type.dtype()));
    // Before iOS 18 indices are packed, and the size of the table tells their bits.
    if (table != nullptr && table->type.is_tensor() && table->type.rank() == 1 && table->type.shape()[0] > 0)
      bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(table->type.shape()[0] - 1)));
    return form == "cast" || form == "sparse" ? std::string(form) : cat(bits, "-bit ", form);
  }
  return "";
}

}  // namespace moka::diff
