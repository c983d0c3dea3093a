#include "ops/common/indexing.h"

#include <cmath>

namespace moka::ops {

namespace {

template <class T>
T apply(Combine rule, T a, T b) {
  switch (rule) {
    case Combine::update: return b;
    case Combine::add: return a + b;
    case Combine::sub: return a - b;
    case Combine::mul: return a * b;
    case Combine::div: return a / b;
    case Combine::max: return b > a || std::isnan(b) ? b : a;
    case Combine::min: return b < a || std::isnan(b) ? b : a;
  }
  return b;
}

int64_t apply_int(Combine rule, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (rule) {
    case Combine::update: return b;
    case Combine::add: return static_cast<int64_t>(ua + ub);
    case Combine::sub: return static_cast<int64_t>(ua - ub);
    case Combine::mul: return static_cast<int64_t>(ua * ub);
    case Combine::div: return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-ua) : a / b;
    case Combine::max: return b > a ? b : a;
    case Combine::min: return b < a ? b : a;
  }
  return b;
}

}  // namespace

Result<Indexer> Indexer::of(const OpCall& call) {
  Indexer i;
  i.wraps = call.version().since < Opset::ios17;
  if (call.version().param_index("validate_indices") >= 0) i.strict = MOKA_TRY(call.flag("validate_indices"));
  return i;
}

Status Indexer::check(const OpCall& call, const TensorView& indices, const Shape& s, int axis, int64_t depth) const {
  if (!strict || depth <= 0) return {};
  const int64_t n = indices.count();
  for (int64_t i = 0; i < n; i++) {
    const int64_t v = load_i64(indices, i), size = s[axis + static_cast<int>(i % depth)];
    if (size >= 0 && (v < 0 || v >= size)) {
      return fail(ErrorCode::data, "operation '", call.name(), "' (", call.version().def->name,
                  "), parameter 'indices': expected indices from 0 to ", size - 1, ", got ", v);
    }
  }
  return {};
}

Result<Combine> combine_of(const OpCall& call) {
  const std::string_view mode = MOKA_TRY(call.text("mode"));
  if (mode == "update") return Combine::update;
  if (mode == "add") return Combine::add;
  if (mode == "sub") return Combine::sub;
  if (mode == "mul") return Combine::mul;
  if (mode == "div") return Combine::div;
  if (mode == "max") return Combine::max;
  if (mode == "min") return Combine::min;
  return call.error("mode", "update, add, sub, mul, div, max or min", mode);
}

void combine_elements(Combine rule, const TensorView& dst, int64_t to, const TensorView& src, int64_t from, int64_t n) {
  if (rule == Combine::update) return copy_elements(dst, to, src, from, n);
  if (dst.dtype == DType::fp32) {
    float* d = dst.as<float>() + to;
    const float* s = src.as<float>() + from;
    for (int64_t i = 0; i < n; i++) d[i] = apply(rule, d[i], s[i]);
  } else if (is_float(dst.dtype)) {
    for (int64_t i = 0; i < n; i++) store_f64(dst, to + i, apply(rule, load_f64(dst, to + i), load_f64(src, from + i)));
  } else {
    for (int64_t i = 0; i < n; i++)
      store_i64(dst, to + i, apply_int(rule, load_i64(dst, to + i), load_i64(src, from + i)));
  }
}

}  // namespace moka::ops
