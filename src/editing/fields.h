// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/message/message.h"

/// Functions that read or write a field of a message in one call. Errors: those of format::Message.
namespace moka::editing {

using format::Message;

/// A field without a value reads as empty or 0. The text of an enumerator is its name.
Result<std::string> text_of(const Message& message, std::string_view field);
Result<bool> has_text(const Message& message, std::string_view field, std::string_view text);
Result<int64_t> integer_of(const Message& message, std::string_view field);
Result<std::vector<std::string>> texts_of(const Message& message, std::string_view field);
Result<std::vector<int64_t>> integers_of(const Message& message, std::string_view field);

Status set_text(Message message, std::string_view field, const std::string& text);
Status set_integer(Message message, std::string_view field, int64_t value);
Status set_texts(Message message, std::string_view field, const std::vector<std::string>& texts);
Status set_integers(Message message, std::string_view field, const std::vector<int64_t>& values);

/// The message in a field, or an empty message of the field's type if it has no value.
Result<Message> child_or_empty(const Message& message, std::string_view field);

/// The value with this key in a map of messages. Error not_found.
Result<Message> map_value(const Message& message, std::string_view map, std::string_view key);

}  // namespace moka::editing
