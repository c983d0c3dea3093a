// SPDX-License-Identifier: Apache-2.0
#include "editing/fields.h"

namespace moka::editing {
namespace {

int64_t integer(const format::Scalar& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return *i;
  if (const auto* u = std::get_if<uint64_t>(&value)) return static_cast<int64_t>(*u);
  if (const auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
  return 0;
}

}  // namespace

Result<std::vector<std::string>> texts_of(const Message& message, std::string_view field) {
  std::vector<std::string> out;
  for (const format::Scalar& value : MOKA_TRY(message.values(field))) {
    const auto* text = std::get_if<std::string>(&value);
    out.push_back(text != nullptr ? *text : std::to_string(integer(value)));
  }
  return out;
}

Result<std::vector<int64_t>> integers_of(const Message& message, std::string_view field) {
  std::vector<int64_t> out;
  for (const format::Scalar& value : MOKA_TRY(message.values(field))) out.push_back(integer(value));
  return out;
}

Result<std::string> text_of(const Message& message, std::string_view field) {
  std::vector<std::string> all = MOKA_TRY(texts_of(message, field));
  return all.empty() ? std::string() : std::move(all.back());
}

Result<bool> has_text(const Message& message, std::string_view field, std::string_view text) {
  const std::string held = MOKA_TRY(text_of(message, field));
  return held == text;
}

Result<int64_t> integer_of(const Message& message, std::string_view field) {
  const std::vector<int64_t> all = MOKA_TRY(integers_of(message, field));
  return all.empty() ? 0 : all.back();
}

Status set_text(Message message, std::string_view field, const std::string& text) {
  return message.set(field, format::Scalar(text));
}

Status set_integer(Message message, std::string_view field, int64_t value) {
  return message.set(field, format::Scalar(value));
}

Status set_texts(Message message, std::string_view field, const std::vector<std::string>& texts) {
  const std::vector<format::Scalar> values(texts.begin(), texts.end());
  return message.set_all(field, values);
}

Status set_integers(Message message, std::string_view field, const std::vector<int64_t>& values) {
  const std::vector<format::Scalar> list(values.begin(), values.end());
  return message.set_all(field, list);
}

Result<Message> child_or_empty(const Message& message, std::string_view field) {
  if (MOKA_TRY(message.count(field)) > 0) return message.child(field);
  return Message::make(message.def().find(field)->message->name);
}

Result<Message> map_value(const Message& message, std::string_view map, std::string_view key) {
  for (const Message& entry : MOKA_TRY(message.children(map)))
    if (MOKA_TRY(has_text(entry, "key", key))) return entry.child("value");
  return fail(ErrorCode::not_found, "field '", map, "' of ", message.def().name, " has no '", key, "'");
}

}  // namespace moka::editing
