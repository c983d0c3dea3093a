// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/error.h"
#include "format/mlmodel/payload_cutter.h"

namespace moka::proto {
class Model;
class ModelDescription;
}  // namespace moka::proto

namespace moka::format {

/// Owns decoded messages. Their memory is charged to a budget while the owner lives.
class MessageHolder;

struct DecodedModel {
  std::shared_ptr<MessageHolder> holder;
  proto::Model* model = nullptr;  ///< owned by the holder
  std::vector<Payload> payloads;
};

/// Decodes a specification; large payloads stay in `spec`. `budget` may be null.
/// Errors: malformed, unsupported (size), out_of_budget.
Result<DecodedModel> decode_model(const Bytes& spec, const std::shared_ptr<MemoryBudget>& budget);

/// A copy of the message, with the same payloads. Its memory is charged to no budget.
DecodedModel copy_of(const DecodedModel& model);

/// A Model that contains only the description encoded in `description`.
Result<DecodedModel> decode_description(const Bytes& description, const std::shared_ptr<MemoryBudget>& budget);

}  // namespace moka::format
