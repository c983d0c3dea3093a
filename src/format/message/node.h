// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "format/message/message.h"

namespace moka::format {

/// How values are encoded; the numbers are protobuf's.
enum class Wire : uint8_t { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

/// One field as the wire has it.
struct WireField {
  uint32_t number = 0;
  Wire wire = Wire::varint;
  const FieldDef* def = nullptr;         ///< null: unknown, or of another kind than the schema says
  uint64_t bits = 0;                     ///< of a number
  Bytes content;                         ///< of a delimited field
  std::shared_ptr<Message::Node> child;  ///< once somebody has read the message
};

struct Message::Node {
  const MessageDef* def = nullptr;
  Bytes encoded;         ///< what was read
  bool split = false;    ///< `fields` has the content of `encoded`
  bool changed = false;  ///< `encoded` is out of date
  std::vector<WireField> fields;
  size_t size = 0;  ///< encoded, set by serialize
};

/// Fills the fields of the node, and merges messages of a field that should occur once. Error malformed.
Status split(Message::Node& node);

std::shared_ptr<Message::Node> deep_copy(const Message::Node& node);

/// Whether one field of this wire type may hold several values of the kind.
bool is_packable(FieldKind kind);
Wire wire_of(FieldKind kind);

}  // namespace moka::format
