// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>

#include "format/proto/mil.pb.h"
#include "ir/type.h"

namespace moka::import {

/// Element types of ML programs: the specification's and the IR's names.
inline constexpr std::pair<proto::MILSpec::DataType, ir::DType> kDataTypes[] = {
    {proto::MILSpec::BOOL, ir::DType::boolean},
    {proto::MILSpec::STRING, ir::DType::string},
    {proto::MILSpec::FLOAT8E4M3FN, ir::DType::fp8e4m3fn},
    {proto::MILSpec::FLOAT8E5M2, ir::DType::fp8e5m2},
    {proto::MILSpec::FLOAT16, ir::DType::fp16},
    {proto::MILSpec::FLOAT32, ir::DType::fp32},
    {proto::MILSpec::FLOAT64, ir::DType::fp64},
    {proto::MILSpec::BFLOAT16, ir::DType::bf16},
    {proto::MILSpec::INT4, ir::DType::int4},
    {proto::MILSpec::INT8, ir::DType::int8},
    {proto::MILSpec::INT16, ir::DType::int16},
    {proto::MILSpec::INT32, ir::DType::int32},
    {proto::MILSpec::INT64, ir::DType::int64},
    {proto::MILSpec::UINT1, ir::DType::uint1},
    {proto::MILSpec::UINT2, ir::DType::uint2},
    {proto::MILSpec::UINT3, ir::DType::uint3},
    {proto::MILSpec::UINT4, ir::DType::uint4},
    {proto::MILSpec::UINT6, ir::DType::uint6},
    {proto::MILSpec::UINT8, ir::DType::uint8},
    {proto::MILSpec::UINT16, ir::DType::uint16},
    {proto::MILSpec::UINT32, ir::DType::uint32},
    {proto::MILSpec::UINT64, ir::DType::uint64}};

/// DType::none for an unknown type.
inline ir::DType dtype_of(proto::MILSpec::DataType type) {
  const auto* found =
      std::find_if(std::begin(kDataTypes), std::end(kDataTypes), [&](auto& t) { return t.first == type; });
  return found == std::end(kDataTypes) ? ir::DType::none : found->second;
}

/// UNUSED_TYPE for a type that ML programs do not have.
inline proto::MILSpec::DataType data_type_of(ir::DType type) {
  const auto* found =
      std::find_if(std::begin(kDataTypes), std::end(kDataTypes), [&](auto& t) { return t.second == type; });
  return found == std::end(kDataTypes) ? proto::MILSpec::UNUSED_TYPE : found->first;
}

}  // namespace moka::import
