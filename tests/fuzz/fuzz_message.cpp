// SPDX-License-Identifier: Apache-2.0
// Input: a specification (.mlmodel), read field by field and written again.
#include <cstdint>
#include <cstdlib>

#include "format/message/message.h"

namespace {

using moka::format::Message;

/// Reads every value of every message.
void read_all(const Message& message, int depth) {
  constexpr int most = 32;
  if (depth > most) return;
  const auto names = message.names();
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const auto* field = message.def().find(std::string_view(name));
    if (field->kind != moka::format::FieldKind::message) {
      (void)message.values(name).ok();
      (void)message.packed(name).ok();
      continue;
    }
    const size_t count = *message.count(name);
    for (size_t i = 0; i < count && i < most; ++i)
      if (auto child = message.child(name, i); child.ok()) read_all(*child, depth + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  auto message = Message::parse("Model", bytes);
  if (!message.ok()) return 0;
  read_all(*message, 0);
  if (!message->decode_all().ok()) return 0;
  const auto once = message->serialize()->joined();
  auto again = Message::parse("Model", once);
  if (!again.ok() || !again->decode_all().ok() || again->serialize()->joined().text() != once.text()) std::abort();
  return 0;
}
