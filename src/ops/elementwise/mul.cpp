// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/binary.h"

namespace moka::ops {

namespace {

void mul_gradient(Gradient& g) {
  if (g.wants("x")) g.set("x", g.dy() * g.in("y"));
  if (g.wants("y")) g.set("y", g.dy() * g.x());
}

}  // namespace

OpDef define_mul() {
  return binary(
             "mul", "x * y with broadcasting; integers wrap.", [](auto a, auto b) { return a * b; },
             [](int64_t a, int64_t b) {
               return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
             },
             Trait::commutative)
      .note(
          "In float16, a constant of at most 1024 elements that is infinite counts as 3.4e38, the largest float32, "
          "unless "
          "precision is exact: 0 times it is 0. The first prediction of a model says so.",
          "a mask of -1e9 becomes infinite when it is stored as float16, and was 0 where nothing is masked; IEEE 754 "
          "and "
          "exact give NaN")
      .gradient(mul_gradient)
      .build();
}

}  // namespace moka::ops
