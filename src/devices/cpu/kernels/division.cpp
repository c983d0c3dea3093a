// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/pairs.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

namespace {

using vector::Binary;
using vector::Integers;
using vector::loops;

Match match_division(const MatchCall& m) {
  const ir::DType dtype = m.call.dtype("x");
  if (dtype != ir::DType::fp32 && dtype != ir::DType::int32) return Match::no(cat("element type ", dtype));
  const bool quotient = m.call.version().def->name == "floor_div";
  constexpr double kEach = 10;  // floating-point operations in the time of one quotient
  return match_pairs(m, "cpu.division", kEach, [=](const PairRun& r) {
    if (dtype == ir::DType::fp32)
      loops().binary(quotient ? Binary::floor_div : Binary::mod, r.x_as<float>(), r.x_step, r.y_as<float>(), r.y_step,
                     r.out_as<float>(), r.n);
    else
      loops().integers(quotient ? Integers::floor_div : Integers::mod, r.x_as<int32_t>(), r.x_step, r.y_as<int32_t>(),
                       r.y_step, r.out_as<int32_t>(), r.n);
  });
}

}  // namespace

KernelFamily family_division() {
  static const KernelDef defs[] = {{.name = "cpu.division", .ops = {"floor_div", "mod"}, .match = match_division}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
