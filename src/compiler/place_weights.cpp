// SPDX-License-Identifier: Apache-2.0
#include "compiler/place_weights.h"

namespace moka::compiler {
namespace {

using ir::DType;

/// nullopt: Core ML keeps the type in the message.
std::optional<format::BlobType> blob_type(DType type, ir::Opset opset) {
  using format::BlobType;
  switch (type) {
    case DType::fp16: return BlobType::float16;
    case DType::fp32: return BlobType::float32;
    case DType::int8: return BlobType::int8;
    case DType::uint8: return BlobType::uint8;
    case DType::int16: return BlobType::int16;
    case DType::uint16: return BlobType::uint16;
    default: break;
  }
  if (opset < ir::Opset::ios18) return std::nullopt;
  switch (type) {
    case DType::int4: return BlobType::int4;
    case DType::uint1: return BlobType::uint1;
    case DType::uint2: return BlobType::uint2;
    case DType::uint3: return BlobType::uint3;
    case DType::uint4: return BlobType::uint4;
    case DType::uint6: return BlobType::uint6;
    default: return std::nullopt;
  }
}

}  // namespace

std::function<std::optional<BlobPlace>(const ir::Constant&)> place_in(format::WeightFile& weights, ir::Opset opset) {
  return [&weights, opset](const ir::Constant& constant) -> std::optional<BlobPlace> {
    constexpr int64_t few = 10;  // elements
    const ir::Tensor& t = constant.tensor;
    if (!constant.type.is_tensor() || t.count() < few) return std::nullopt;
    const auto type = blob_type(t.dtype(), opset);
    if (!type) return std::nullopt;
    const Bytes data{{static_cast<const std::byte*>(t.data()), t.bytes()}, t.owner()};
    return BlobPlace{"@model_path/weights/weight.bin", weights.add(*type, data, static_cast<uint64_t>(t.count()))};
  };
}

}  // namespace moka::compiler
