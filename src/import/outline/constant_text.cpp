// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/utf8.h"
#include "import/outline/parts.h"

namespace moka::import {
namespace {

constexpr int64_t kMost = 32;
constexpr size_t kMostText = 200;

std::string element(const ir::Tensor& tensor, int64_t i) {
  const ir::DType type = tensor.dtype();
  if (type == ir::DType::string) return shortened(static_cast<const std::string*>(tensor.data())[i], kMostText);
  if (type == ir::DType::boolean) return load_i64(tensor.view(), i) != 0 ? "true" : "false";
  if (ir::is_integer(type)) return cat(load_i64(tensor.view(), i));
  return cat(load_f64(tensor.view(), i));
}

}  // namespace

std::string constant_text(const ir::Constant& constant) {
  std::string out;
  if (constant.type.is_tensor()) {
    const ir::Tensor& t = constant.tensor;
    if (t.empty_handle()) return "";
    if (t.shape().rank() == 0) return element(t, 0);
    const int64_t count = t.count();
    for (int64_t i = 0; i < std::min(count, kMost); ++i) out += (i > 0 ? ", " : "") + element(t, i);
    if (count > kMost) out += ", …";
    return "[" + out + "]";
  }
  for (size_t i = 0; i < std::min(constant.parts.size(), static_cast<size_t>(kMost)); ++i)
    out += (i > 0 ? ", " : "") + constant_text(constant.parts[i]);
  if (constant.parts.size() > static_cast<size_t>(kMost)) out += ", …";
  return "(" + out + ")";
}

}  // namespace moka::import
