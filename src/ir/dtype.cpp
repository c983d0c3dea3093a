// SPDX-License-Identifier: Apache-2.0
#include "ir/dtype.h"

namespace moka::ir {

namespace {
struct Row {
  std::string_view name;
  int bits;
};
constexpr Row kRows[] = {
    {"none", 0},    {"fp16", 16},   {"fp32", 32},   {"fp64", 64},  {"bf16", 16},  {"fp8e4m3fn", 8},
    {"fp8e5m2", 8}, {"int4", 4},    {"int8", 8},    {"int16", 16}, {"int32", 32}, {"int64", 64},
    {"uint1", 1},   {"uint2", 2},   {"uint3", 3},   {"uint4", 4},  {"uint6", 6},  {"uint8", 8},
    {"uint16", 16}, {"uint32", 32}, {"uint64", 64}, {"bool", 8},   {"string", 0},
};
static_assert(sizeof kRows / sizeof kRows[0] == static_cast<size_t>(DType::string) + 1);
const Row& row(DType t) { return kRows[static_cast<size_t>(t)]; }
}  // namespace

std::string_view to_string(DType t) { return row(t).name; }

DType dtype_from_string(std::string_view name) {
  for (size_t i = 1; i < sizeof kRows / sizeof kRows[0]; i++)
    if (kRows[i].name == name) return static_cast<DType>(i);
  return DType::none;
}

int bits(DType t) { return row(t).bits; }
bool is_float(DType t) { return t >= DType::fp16 && t <= DType::fp8e5m2; }
bool is_integer(DType t) { return t >= DType::int4 && t <= DType::uint64; }
bool is_signed_integer(DType t) { return t >= DType::int4 && t <= DType::int64; }
bool is_sub_byte(DType t) { return is_integer(t) && bits(t) < 8; }

}  // namespace moka::ir
