// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include "ir/gradient.h"
#include "ops/common/broadcast.h"
#include "ops/common/common.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_select(const OpCall& call) {
  const Type &cond = call.type("cond"), &a = call.type("a"), &b = call.type("b");
  if (a.dtype() != b.dtype()) return call.error("b", cat("the type of a, ", a.dtype()), cat(b.dtype()));
  if (!cond.is_ranked() || !a.is_ranked() || !b.is_ranked()) return one(Type::unranked(a.dtype()));
  Result<Shape> values = broadcast(a.shape(), b.shape());
  if (!values) return call.error("b", cat("a shape that broadcasts with that of a, ", a.shape()), cat(b.shape()));
  Result<Shape> all = broadcast(*values, cond.shape());
  if (!all)
    return call.error("cond", cat("a shape that broadcasts with that of a and b, ", *values), cat(cond.shape()));
  return one(Type::tensor(a.dtype(), *all));
}

template <class T>
void choose(const BroadcastWalk& walk, const uint8_t* cond, const T* a, const T* b, T* out, int64_t count) {
  const int64_t n = walk.row(), sc = walk.row_stride(0), sa = walk.row_stride(1), sb = walk.row_stride(2);
  walk.each_row(count, [&](int64_t o, int64_t ic, int64_t ia, int64_t ib) {
    for (int64_t i = 0; i < n; i++) out[o + i] = cond[ic + i * sc] != 0 ? a[ia + i * sa] : b[ib + i * sb];
  });
}

Status select_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &cond = call.in("cond"), &a = call.in("a"), &b = call.in("b"), &y = out[0];
  const int64_t count = y.count();
  if (count == 0) return {};
  const BroadcastWalk walk(y.shape, {&cond.shape, &a.shape, &b.shape});
  const auto* c = cond.as<uint8_t>();
  if (y.dtype == DType::string) {
    choose(walk, c, a.as<std::string>(), b.as<std::string>(), y.as<std::string>(), count);
    return {};
  }
  switch (bits(y.dtype)) {
    case 8: choose(walk, c, a.as<uint8_t>(), b.as<uint8_t>(), y.as<uint8_t>(), count); return {};
    case 16: choose(walk, c, a.as<uint16_t>(), b.as<uint16_t>(), y.as<uint16_t>(), count); return {};
    case 32: choose(walk, c, a.as<uint32_t>(), b.as<uint32_t>(), y.as<uint32_t>(), count); return {};
    case 64: choose(walk, c, a.as<uint64_t>(), b.as<uint64_t>(), y.as<uint64_t>(), count); return {};
    default: break;
  }
  const int64_t n = walk.row(), sc = walk.row_stride(0), sa = walk.row_stride(1), sb = walk.row_stride(2);
  walk.each_row(count, [&](int64_t o, int64_t ic, int64_t ia, int64_t ib) {
    for (int64_t i = 0; i < n; i++) {
      const bool first = c[ic + i * sc] != 0;
      copy_element(y, o + i, first ? a : b, first ? ia + i * sa : ib + i * sb);
    }
  });
  return {};
}

void select_gradient(Gradient& g) {
  if (g.wants("a")) g.set("a", select(g.in("cond"), g.dy(), 0.0));
  if (g.wants("b")) g.set("b", select(g.in("cond"), 0.0, g.dy()));
}

}  // namespace

OpDef define_select() {
  return OpBuilder("select", "Elements of a where cond is true, of b elsewhere, with broadcasting.")
      .type_var("T", kF16F32 | kI32 | kBool)
      .in("cond", kBool)
      .in("a", "T")
      .in("b", "T")
      .infer(infer_select)
      .reference(select_reference)
      .traits(Trait::elementwise)
      .note("All three inputs broadcast. A NaN that is not selected has no effect.", "numpy.where")
      .gradient(select_gradient)
      .build();
}

}  // namespace moka::ops
