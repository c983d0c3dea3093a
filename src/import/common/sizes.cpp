// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/common/constants.h"
#include "import/common/expressions.h"

/// Finds constant parts of sizes that the graph computes.
namespace moka::import {

using ir::DType;
using ir::Shape;
using ir::Tensor;
using ir::Value;

namespace {

Size size_of_dim(int64_t d) { return d >= 0 ? Size{true, d} : Size{false, 0, d}; }

}  // namespace

std::vector<Size> Expressions::sizes_of(const Value* v) const {
  if (const Tensor* t = constant_of(v); t != nullptr && t->dtype() != DType::string) {
    std::vector<Size> out;
    for (const int64_t x : integers_of(*t)) out.push_back({true, x});
    return out;
  }
  if (const auto it = sizes_.find(v); it != sizes_.end()) return it->second;
  if (!v->type.is_ranked() || v->type.rank() > 1) return {};
  if (v->type.rank() == 0) return {Size{}};
  const int64_t n = v->type.shape()[0];
  if (n < 0) unsupported("a vector of sizes whose length is known only when it runs");
  return std::vector<Size>(static_cast<size_t>(n));
}

Value* Expressions::shape_of(Value* x) const {
  if (x->type.is_ranked() && x->type.is_concrete()) return integers_constant(x->type.shape().to_vector());
  Value* v = op("shape", {{"x", x}});
  if (!x->type.is_ranked()) return v;
  std::vector<Size> sizes;
  for (const int64_t d : x->type.shape()) sizes.push_back(size_of_dim(d));
  set_sizes(v, std::move(sizes));
  return v;
}

Value* Expressions::size_of(Value* x, int axis) const {
  const int64_t d = x->type.shape()[axis];
  if (d >= 0) return constant(Tensor::scalar_i64(DType::int32, d));
  Value* one = op("gather", {{"x", shape_of(x)}, {"indices", axis}, {"axis", 0}});
  set_sizes(one, {size_of_dim(d)});
  return one;
}

Value* Expressions::reshape(Value* x, Value* shape, const std::vector<Size>& sizes) const {
  std::vector<int64_t> dims;
  size_t unknown = 0, rest = 0;
  for (const Size& s : sizes) {
    unknown += !s.known;
    rest += s.known && s.value == -1;
    dims.push_back(s.known ? s.value : -1);
  }
  if (unknown == 0 || (unknown == 1 && rest == 0)) {
    Value* v = reshape(x, dims);
    for (size_t i = 0; i < sizes.size() && v->type.is_ranked(); ++i)
      if (int64_t& d = v->type.shape()[static_cast<int>(i)]; d == ir::kAnyDim && !sizes[i].known) d = sizes[i].symbol;
    return v;
  }
  // One unknown size of x that occurs again: what remains follows from the known ones.
  if (unknown == 1 && rest == 1 && x->type.is_ranked()) {
    int64_t others = 1, symbol = ir::kAnyDim, count = 0, wanted = 1, target = ir::kAnyDim;
    for (const int64_t d : x->type.shape()) {
      if (d >= 0) others *= d;
      if (d < 0) symbol = d, ++count;
    }
    for (const Size& s : sizes) {
      if (!s.known) target = s.symbol;
      if (s.known && s.value > 0) wanted *= s.value;
    }
    if (count == 1 && symbol != ir::kAnyDim && symbol == target && wanted > 0 && others % wanted == 0) {
      int at = 0;
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (!sizes[i].known) at = static_cast<int>(i);
        dims[i] = !sizes[i].known ? -1 : sizes[i].value == -1 ? others / wanted : sizes[i].value;
      }
      Value* v = reshape(x, dims);
      if (v->type.is_ranked() && v->type.shape()[at] < 0) v->type.shape()[at] = symbol;
      return v;
    }
  }
  ir::Type declared = ir::Type::tensor(x->type.dtype(), Shape());
  for (const Size& s : sizes) {
    if (declared.rank() == ir::kMaxRank) unsupported(cat("a tensor of rank ", sizes.size()));
    declared.shape().push_back(s.known && s.value >= 0 ? s.value : ir::kAnyDim);
  }
  ir::OpSpec spec{"reshape", {{"x", x}, {"shape", shape}}, name("reshape"), {}, {declared}};
  Value* v = need(builder_.append(std::move(spec)))->output();
  for (size_t i = 0; i < sizes.size(); ++i)
    if (int64_t& d = v->type.shape()[static_cast<int>(i)]; d == ir::kAnyDim && !sizes[i].known) d = sizes[i].symbol;
  return v;
}

}  // namespace moka::import
