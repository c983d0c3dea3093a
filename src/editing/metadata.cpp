// SPDX-License-Identifier: Apache-2.0
#include "editing/metadata.h"

namespace moka::editing {

Status set_metadata(Message model, std::string_view field, std::string_view key, const std::string& text) {
  Message description = MOKA_TRY(model.edit("description"));
  Message metadata = MOKA_TRY(description.edit("metadata"));
  if (field != "userDefined") return set_text(metadata, field, text);
  const std::vector<Message> entries = MOKA_TRY(metadata.children("userDefined"));
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!MOKA_TRY(has_text(entries[i], "key", key))) continue;
    return text.empty() ? metadata.remove("userDefined", i) : set_text(entries[i], "value", text);
  }
  if (text.empty()) return {};
  const Message entry = MOKA_TRY(metadata.edit("userDefined"));
  MOKA_TRY(set_text(entry, "key", std::string(key)));
  return set_text(entry, "value", text);
}

Status describe(Message model, std::string_view feature, const std::string& text) {
  for (const Feature& f : MOKA_TRY(find_features(model, feature, Side::any)))
    MOKA_TRY(set_text(f.message, "shortDescription", text));
  return {};
}

}  // namespace moka::editing
