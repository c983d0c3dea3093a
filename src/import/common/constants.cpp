// SPDX-License-Identifier: Apache-2.0
#include "import/common/constants.h"

#include <limits>

#include "base/half.h"
#include "import/common/failure.h"

namespace moka::import {

using ir::DType;
using ir::Tensor;
using ir::Value;

namespace {

bool is_no_limit(int64_t v) {
  return v == std::numeric_limits<int64_t>::max() || v == std::numeric_limits<int64_t>::min();
}

}  // namespace

const Tensor* constant_of(const Value* v) {
  const ir::Constant* c = v->constant();
  return c != nullptr && c->type.is_tensor() ? &c->tensor : nullptr;
}

std::string identifier(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out.push_back(plain ? c : '_');
  }
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(out.begin(), '_');
  return out;
}

std::vector<int64_t> integers_of(const Tensor& t) {
  std::vector<int64_t> out(static_cast<size_t>(t.count()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = ir::is_float(t.dtype()) ? static_cast<int64_t>(ir::load_f64(t.view(), static_cast<int64_t>(i)))
                                     : ir::load_i64(t.view(), static_cast<int64_t>(i));
  return out;
}

Tensor converted(const Tensor& t, DType type) {
  if (t.dtype() == type) return t;
  Tensor out = need(Tensor::uninitialized(type, t.shape()));
  const ir::TensorView from = t.view(), to = out.view();
  if (t.dtype() == DType::fp16 && type == DType::fp32) {
    half_to_float(from.as<uint16_t>(), to.as<float>(), static_cast<size_t>(t.count()));
    return out;
  }
  const bool floats = ir::is_float(t.dtype()) || ir::is_float(type);
  for (int64_t i = 0; i < t.count(); ++i) {
    if (floats)
      ir::store_f64(to, i, ir::load_f64(from, i));
    else
      ir::store_i64(to, i, ir::load_i64(from, i));
  }
  return out;
}

Tensor computed(const Tensor& t, std::string_view name) {
  const DType from = t.dtype();
  if (from == DType::fp32 || from == DType::fp16 || from == DType::int32 || from == DType::boolean) return t;
  if (from == DType::string) refuse(ErrorCode::unsupported, "constant '", name, "': Core ML has no tensors of strings");
  if (ir::is_float(from)) return converted(t, DType::fp32);
  Tensor out = need(Tensor::uninitialized(DType::int32, t.shape()));
  const auto to = out.mut<int32_t>();
  constexpr int64_t most = std::numeric_limits<int32_t>::max(), least = std::numeric_limits<int32_t>::min();
  for (size_t i = 0; i < to.size(); ++i) {
    const int64_t v = ir::load_i64(t.view(), static_cast<int64_t>(i));
    const bool fits = v >= least && v <= most;
    if (!fits && !(from == DType::int64 && is_no_limit(v)))
      refuse(ErrorCode::unsupported, "constant '", name, "': ", v, " does not fit into int32, the integers of Core ML");
    to[i] = static_cast<int32_t>(v > most ? most : v < least ? least : v);
  }
  return out;
}

}  // namespace moka::import
