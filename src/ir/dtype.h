// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace moka::ir {

/// Element types of MIL. Integers below 8 bits are packed, lowest bits first, without gaps between elements.
enum class DType : uint8_t {
  none,
  fp16,
  fp32,
  fp64,
  bf16,
  fp8e4m3fn,
  fp8e5m2,
  int4,
  int8,
  int16,
  int32,
  int64,
  uint1,
  uint2,
  uint3,
  uint4,
  uint6,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,  ///< one byte, 0 or 1
  string,   ///< std::string objects
};

/// Name in MIL text: "fp16", "int32", "bool", "string".
std::string_view to_string(DType t);
/// DType::none when the name is unknown.
DType dtype_from_string(std::string_view name);

/// Bits of one stored element; 0 for none and string.
int bits(DType t);
bool is_float(DType t);
bool is_integer(DType t);  ///< signed or unsigned, not bool
bool is_signed_integer(DType t);
bool is_sub_byte(DType t);

inline void append_to(std::string& out, DType t) { out.append(to_string(t)); }

}  // namespace moka::ir
