// SPDX-License-Identifier: Apache-2.0
#include "editing/weights.h"

#include <map>
#include <mutex>
#include <set>

#include "base/sha256.h"
#include "format/weights/weight_file.h"
#include "format/weights/weight_store.h"

namespace moka::editing {
namespace {

using format::FieldKind;
using format::MessageDef;

/// The types of messages that are or contain one of this type.
const std::set<const MessageDef*>& holding(std::string_view type) {
  static std::mutex mutex;
  static std::map<const MessageDef*, std::set<const MessageDef*>> known;
  const std::lock_guard locked(mutex);
  const MessageDef* wanted = format::find_message(type);
  const auto [it, is_new] = known.try_emplace(wanted);
  std::set<const MessageDef*>& out = it->second;
  if (!is_new) return out;
  out.insert(wanted);
  // Entries of maps are not among the names of messages, so fields are followed.
  std::set<const MessageDef*> all, open{format::find_message("Model")};
  while (!open.empty()) {
    const MessageDef* def = *open.begin();
    open.erase(open.begin());
    if (!all.insert(def).second) continue;
    for (const auto& [number, field] : def->fields)
      if (field.message != nullptr) open.insert(field.message);
  }
  for (bool more = true; more;) {
    more = false;
    for (const MessageDef* def : all)
      for (const auto& [number, field] : def->fields)
        if (field.message != nullptr && out.contains(field.message)) more |= out.insert(def).second;
  }
  return out;
}

Status visit_messages(const Message& message, const MessageDef* wanted, const std::set<const MessageDef*>& holding,
                      const std::function<Status(Message)>& visit) {
  if (&message.def() == wanted) MOKA_TRY(visit(message));
  for (const auto& [number, field] : message.def().fields) {
    if (field.kind != FieldKind::message || !holding.contains(field.message)) continue;
    for (const Message& child : MOKA_TRY(message.children(field.name)))
      MOKA_TRY(visit_messages(child, wanted, holding, visit));
  }
  return {};
}

}  // namespace

Status for_messages(const Message& message, std::string_view type, const std::function<Status(Message)>& visit) {
  return visit_messages(message, format::find_message(type), holding(type), visit);
}

Status drop_unused_weights(format::ModelSource& source) {
  std::map<std::string, std::map<int64_t, int64_t>> used;  // offsets by file, and their new values
  MOKA_TRY(for_messages(source.specification, "MILSpec.Value.BlobFileValue", [&](const Message& blob) -> Status {
    const std::string name = MOKA_TRY(text_of(blob, "fileName"));
    used[std::string(format::WeightStore::relative_name(name))][MOKA_TRY(integer_of(blob, "offset"))] = -1;
    return {};
  }));
  std::map<std::string, Bytes> joined;
  for (auto it = source.weights.begin(); it != source.weights.end();) {
    const auto offsets = used.find(it->first);
    if (offsets == used.end() && it->first.ends_with(".bin")) {
      it = source.weights.erase(it);
      continue;
    }
    if (offsets != used.end()) {
      const Bytes file = it->second.joined();
      const std::vector<format::Blob> all = MOKA_TRY_IN(format::list_blobs(file), cat("'", it->first, "'"));
      if (all.size() == offsets->second.size()) {
        used.erase(offsets);
      } else {
        format::WeightFile kept;
        for (auto& [offset, place] : offsets->second) {
          const format::Blob blob =
              MOKA_TRY_IN(format::read_blob(file, static_cast<uint64_t>(offset)), cat("'", it->first, "'"));
          place = static_cast<int64_t>(kept.add(blob.type, blob.data, blob.count));
        }
        it->second = kept.content();
      }
    }
    ++it;
  }
  return for_messages(source.specification, "MILSpec.Value.BlobFileValue", [&](const Message& blob) -> Status {
    const std::string name = MOKA_TRY(text_of(blob, "fileName"));
    const auto file = used.find(std::string(format::WeightStore::relative_name(name)));
    if (file == used.end()) return {};
    const int64_t place = file->second.at(MOKA_TRY(integer_of(blob, "offset")));
    return place < 0 ? Status() : set_integer(blob, "offset", place);
  });
}

namespace {

/// "weights/1-weight.bin"
std::string free_name(const std::string& name, const format::FileContents& taken) {
  if (!taken.contains(name)) return name;
  const size_t at = name.rfind('/') + 1;
  for (int i = 1;; ++i)
    if (std::string other = name.substr(0, at) + cat(i, "-") + name.substr(at); !taken.contains(other)) return other;
}

}  // namespace

Status bring_weights(format::ModelSource& source, const format::FileContents& files, const Message& message) {
  std::map<std::string, std::string> names;
  for (const auto& [name, content] : files) {
    names[name] = free_name(name, source.weights);
    source.weights.emplace(names[name], content);
  }
  return for_messages(message, "MILSpec.Value.BlobFileValue", [&](const Message& blob) -> Status {
    const std::string file = MOKA_TRY(text_of(blob, "fileName"));
    const std::string relative(format::WeightStore::relative_name(file));
    const auto it = names.find(relative);
    if (it == names.end() || it->second == relative) return {};
    return set_text(blob, "fileName", file.substr(0, file.size() - relative.size()) + it->second);
  });
}

Status merge_weights(format::ModelSource& source) {
  std::map<std::string, Bytes> joined;
  std::map<std::pair<std::string, int64_t>, uint64_t> places;
  std::map<std::string, Bytes> known;  // by what identifies the content
  std::set<std::string> merged;
  format::WeightFile all;
  MOKA_TRY(for_messages(source.specification, "MILSpec.Value.BlobFileValue", [&](const Message& blob) -> Status {
    const std::string file(format::WeightStore::relative_name(MOKA_TRY(text_of(blob, "fileName"))));
    const int64_t offset = MOKA_TRY(integer_of(blob, "offset"));
    const auto [place, is_new] = places.try_emplace({file, offset}, 0);
    if (is_new) {
      const auto content = source.weights.find(file);
      if (content == source.weights.end()) return fail(ErrorCode::not_found, "the model has no file '", file, "'");
      const auto [bytes, first] = joined.try_emplace(file);
      if (first) bytes->second = content->second.joined();
      const format::Blob read =
          MOKA_TRY_IN(format::read_blob(bytes->second, static_cast<uint64_t>(offset)), cat("'", file, "'"));
      const Bytes& shared = known.try_emplace(cat(base64(sha256(read.data.span)), read.count), read.data).first->second;
      place->second = all.add(read.type, shared, read.count);
      merged.insert(file);
    }
    MOKA_TRY(set_text(blob, "fileName", "@model_path/weights/weight.bin"));
    return set_integer(blob, "offset", static_cast<int64_t>(place->second));
  }));
  for (const std::string& file : merged) source.weights.erase(file);
  if (!all.empty()) source.weights["weights/weight.bin"] = all.content();
  return drop_unused_weights(source);
}

}  // namespace moka::editing
