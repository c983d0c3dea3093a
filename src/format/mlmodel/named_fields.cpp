// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodel/named_fields.h"

#include <map>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "format/message/schema.h"
#include "format/mlmodel/payload_cutter.h"

namespace moka::format {
namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr size_t kMostPairs = 200, kMostNumbers = 32, kMostText = 200;

class Walker {
 public:
  std::vector<std::pair<std::string, std::string>> out;

  void walk(data_view bytes, const MessageDef& message, const std::string& path, int depth) {
    if (depth > max_message_depth) return;
    pbf_reader reader(bytes);
    std::map<uint32_t, size_t> seen;
    while (!full_ && reader.next()) {
      const FieldDef* known = message.find(reader.tag());
      if (known == nullptr) {
        reader.skip();
        continue;
      }
      const FieldDef& field = *known;
      const std::string name = cat(path, path.empty() ? "" : ".", field.name);
      const bool delimited = reader.wire_type() == pbf_wire_type::length_delimited;
      if (field.message != nullptr && delimited) {
        const size_t index = seen[reader.tag()]++;
        const data_view view = reader.get_view();
        if (field.message->name == "WeightParams") continue;
        const std::string inner = field.repeated ? cat(name, "[", index, "]") : name;
        const size_t before = out.size();
        walk(view, *field.message, inner, depth + 1);
        // The presence of a message says something even if all of its fields have their defaults.
        if (out.size() == before && view.empty()) add(inner, "set", false);
      } else {
        scalar(reader, field, name, delimited);
      }
    }
  }

 private:
  void add(const std::string& name, std::string text, bool repeated) {
    if (full_) return;
    if (repeated && !out.empty() && out.back().first == name) {
      ++count_;
      std::string& list = out.back().second;
      if (count_ > kMostNumbers) {
        if (count_ == kMostNumbers + 1) list.insert(list.size() - 1, ", …");
        return;
      }
      list.insert(list.size() - 1, ", " + text);
      return;
    }
    count_ = 1;
    if (out.size() == kMostPairs) {
      out.emplace_back("…", "…");
      full_ = true;
      return;
    }
    out.emplace_back(name, repeated ? "[" + text + "]" : std::move(text));
  }

  void scalar(pbf_reader& reader, const FieldDef& field, const std::string& name, bool delimited) {
    if (field.kind == FieldKind::text && delimited)
      return add(name, shortened(reader.get_string(), kMostText), field.repeated);
    if (field.kind == FieldKind::bytes && delimited) return add(name, cat(reader.get_view().size(), " bytes"), false);
    if (delimited) return packed(reader.get_view(), field, name);
    add(name, number(reader, field), field.repeated);
  }

  /// A packed list, read as if each element were a field of its own.
  void packed(data_view bytes, const FieldDef& field, const std::string& name) {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    while (at < end && !full_) {
      if (field.kind == FieldKind::float32 || field.kind == FieldKind::float64) {
        const size_t size = field.kind == FieldKind::float32 ? 4 : 8;
        if (static_cast<size_t>(end - at) < size) return;
        float single;
        double value;
        if (size == 4) {
          std::copy(at, at + 4, reinterpret_cast<char*>(&single));
          value = single;
        } else {
          std::copy(at, at + 8, reinterpret_cast<char*>(&value));
        }
        at += size;
        add(name, cat(value), true);
      } else {
        const uint64_t value = protozero::decode_varint(&at, end);
        add(name, integer(value, field), true);
      }
    }
  }

  static std::string integer(uint64_t value, const FieldDef& field) {
    if (field.enumeration != nullptr) {
      const std::string_view name = field.enumeration->name_of(static_cast<int32_t>(value));
      return name.empty() ? cat(static_cast<int32_t>(value)) : std::string(name);
    }
    if (field.kind == FieldKind::boolean) return value != 0 ? "true" : "false";
    if (field.kind == FieldKind::unsigned_integer) return cat(value);
    return cat(static_cast<int64_t>(value));
  }

  static std::string number(pbf_reader& reader, const FieldDef& field) {
    switch (reader.wire_type()) {
      case pbf_wire_type::fixed32: return cat(reader.get_float());
      case pbf_wire_type::fixed64: return cat(reader.get_double());
      case pbf_wire_type::varint: return integer(reader.get_uint64(), field);
      default: reader.skip(); return "?";
    }
  }

  size_t count_ = 0;
  bool full_ = false;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> named_fields(std::string_view serialized, std::string_view type) {
  Walker walker;
  if (const MessageDef* root = find_message(type)) try {
      walker.walk(data_view(serialized.data(), serialized.size()), *root, {}, 0);
    } catch (const protozero::exception&) {
      // The fields before the damage are the result.
    }
  return std::move(walker.out);
}

}  // namespace moka::format
