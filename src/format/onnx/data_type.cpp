// SPDX-License-Identifier: Apache-2.0
#include "format/onnx/model.h"

namespace moka::format::onnx {
namespace {

struct Entry {
  std::string_view name;
  unsigned bits;
};

constexpr Entry kTypes[] = {
    {"undefined", 0},      {"float", 32},    {"uint8", 8},        {"int8", 8},           {"uint16", 16},
    {"int16", 16},         {"int32", 32},    {"int64", 64},       {"string", 0},         {"bool", 8},
    {"float16", 16},       {"double", 64},   {"uint32", 32},      {"uint64", 64},        {"complex64", 64},
    {"complex128", 128},   {"bfloat16", 16}, {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
    {"float8e5m2fnuz", 8}, {"uint4", 4},     {"int4", 4},         {"float4e2m1", 4},     {"float8e8m0", 8},
    {"uint2", 2},          {"int2", 2},
};

const Entry* find(DataType type) {
  const auto number = static_cast<int32_t>(type);
  return number >= 0 && static_cast<size_t>(number) < std::size(kTypes) ? &kTypes[number] : nullptr;
}

}  // namespace

std::string to_string(DataType type) {
  const Entry* entry = find(type);
  return entry != nullptr ? std::string(entry->name) : cat(static_cast<int32_t>(type));
}

unsigned bits_of(DataType type) {
  const Entry* entry = find(type);
  return entry != nullptr ? entry->bits : 0;
}

}  // namespace moka::format::onnx
