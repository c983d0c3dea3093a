#pragma once

#include <cstddef>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace moka::format {

/// Messages may nest this deep, here and in the decoder.
inline constexpr int max_message_depth = 256;
/// Payloads of at least this many bytes stay in the file.
inline constexpr size_t payload_threshold = 4096;

/// Numbers that stay where they are in the specification's bytes.
struct Payload {
  enum class Kind { float32, float16, raw, int8_raw, tensor };
  Kind kind;
  Bytes bytes;
};

/// A specification without its large payloads. In their place the WeightParams or TensorValue has payload_index, an
/// index into `payloads`; a tensor keeps its (now empty) value member.
struct CutSpec {
  Bytes skeleton;  ///< the input itself where nothing was cut
  std::vector<Payload> payloads;
};

/// Reads the wire format of a Model. Any payload_index already in `spec` is dropped.
/// Errors: malformed (not protobuf, nested too deep, a payload that ends within an element).
Result<CutSpec> cut_payloads(const Bytes& spec);

}  // namespace moka::format
