// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "format/message/rope.h"
#include "format/message/schema.h"

namespace moka::format {

/// The value of a field that is not a message. Enumerators are text, or integers where the name is unknown.
using Scalar = std::variant<bool, int64_t, uint64_t, double, std::string, Bytes>;

/// A message of the specification, like a protobuf message with reflection. Fields have names and are checked against
/// the schema. Copies of the object refer to the same message. A field is decoded when it is first read. Unchanged
/// fields, including unknown ones, are written exactly as they were read.
///
///   Message model = MOKA_TRY(Message::parse("Model", bytes));
///   MOKA_TRY(model.set("specificationVersion", int64_t{9}));
///   Rope out = MOKA_TRY(model.serialize());
///
/// Errors: invalid_argument (an unknown field, a value that does not fit it), malformed (bytes that do not decode). Not
/// thread-safe.
class Message {
 public:
  /// Error invalid_argument: the specification has no message of that name.
  static Result<Message> make(std::string_view type);
  static Result<Message> parse(std::string_view type, Bytes bytes);

  const MessageDef& def() const;

  /// The names of the fields that have a value, in the order of the schema.
  Result<std::vector<std::string>> names() const;
  /// Values of a field; 1 or 0 for fields that are not repeated.
  Result<size_t> count(std::string_view field) const;
  /// The name of the field of a oneof that has a value; empty if none has one.
  Result<std::string> which(std::string_view oneof) const;

  /// All values of a field that holds no messages.
  Result<std::vector<Scalar>> values(std::string_view field) const;
  /// The numbers of a repeated float or double field, or the content of a bytes field, without a copy where possible.
  Result<Bytes> packed(std::string_view field) const;
  /// An existing message. Error invalid_argument: there are fewer.
  Result<Message> child(std::string_view field, size_t index = 0) const;
  Result<std::vector<Message>> children(std::string_view field) const;

  /// Replaces the value of a field. Setting a member of a oneof clears the others.
  Status set(std::string_view field, const Scalar& value);
  /// Replaces all values of a repeated field.
  Status set_all(std::string_view field, std::span<const Scalar> values);
  /// The inverse of `packed`. The message refers to `bytes` until it is serialized.
  Status set_packed(std::string_view field, Bytes bytes);
  /// Copies `value` into a field; into a repeated field as its last message.
  Status set(std::string_view field, const Message& value);
  /// The message in a field that is not repeated, which is added if absent. For a repeated field, adds a new message.
  Result<Message> edit(std::string_view field);
  /// Replaces the messages of a repeated field. The field refers to these messages, so it shows later changes of them.
  Status set_all(std::string_view field, std::span<const Message> values);
  Status clear(std::string_view field);
  Status remove(std::string_view field, size_t index);

  /// Decodes the message and all messages inside it, so that serialize encodes every field again.
  Status decode_all();
  /// Errors: malformed, unsupported (2 GiB and more, which protobuf does not allow).
  Result<Rope> serialize() const;
  Message copy() const;

  struct Node;
  explicit Message(std::shared_ptr<Node> node) : node_(std::move(node)) {}

 private:
  Result<const FieldDef*> field_of(std::string_view name) const;
  Result<const FieldDef*> message_field(std::string_view name) const;
  Status clear(const FieldDef& def);
  void clear_others(const FieldDef& def);

  std::shared_ptr<Node> node_;
};

}  // namespace moka::format
