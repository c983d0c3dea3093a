// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "format/mlmodel/sample_runs.h"

namespace moka::format {

/// Nesting limit for messages, here and in the decoder.
inline constexpr int max_message_depth = 256;
/// Payloads of at least this size in bytes stay in the file.
inline constexpr size_t payload_threshold = 4096;

/// A large run of numbers, which stays in the specification's bytes.
struct Payload {
  enum class Kind { float32, float16, raw, int8_raw, tensor, samples };
  Kind kind;
  Bytes bytes;  ///< empty for samples
  std::shared_ptr<const SampleRuns> samples = nullptr;
};

/// A specification without its large payloads. The WeightParams, TensorValue or NearestNeighborsIndex that held one has
/// payload_index instead, an index into `payloads`; a tensor keeps its value member, now empty.
struct CutSpec {
  Bytes skeleton;  ///< the input itself if nothing was cut
  std::vector<Payload> payloads;
};

/// Reads the wire format of a Model. Drops any payload_index already in `spec`. Errors: malformed (not protobuf, nested
/// too deep, a payload that ends within an element).
Result<CutSpec> cut_payloads(const Bytes& spec);

}  // namespace moka::format
