// SPDX-License-Identifier: Apache-2.0
#include "format/message/schema.h"

#include <protozero/pbf_reader.hpp>

#include "base/error.h"

namespace moka::format {

/// The descriptors of src/format/proto as protoc writes them (FileDescriptorSet), embedded by the build.
extern const unsigned char schema_bytes[];
extern const unsigned long schema_size;

namespace {

using protozero::data_view;
using protozero::pbf_reader;

constexpr uint32_t first_own_field = 100000;  // payload_index

/// The field numbers below are those of google/protobuf/descriptor.proto.
class Schema {
 public:
  static const Schema& get() {
    static const Schema schema;
    return schema;
  }

  const MessageDef* find(std::string_view name) const {
    for (const char* scope : {".moka.proto.", ".moka.proto.MILSpec.", ".moka.proto.CoreMLModels."})
      if (const auto it = messages.find(cat(scope, name)); it != messages.end()) return &it->second;
    return nullptr;
  }

  std::map<std::string, MessageDef, std::less<>> messages;  ///< by full name, ".moka.proto.Model"

 private:
  Schema() {
    pbf_reader set(reinterpret_cast<const char*>(schema_bytes), schema_size);
    while (set.next(1)) read_file(set.get_message());
    for (auto& [name, message] : messages)
      for (auto& [number, field] : message.fields) {
        if (const auto it = messages.find(field.type_name); it != messages.end()) field.message = &it->second;
        if (const auto it = enums_.find(field.type_name); it != enums_.end()) field.enumeration = &it->second;
      }
  }

  void read_file(pbf_reader file) {
    std::string package;
    std::vector<data_view> nested, enums;
    while (file.next()) switch (file.tag()) {
        case 2: package = "." + file.get_string(); break;
        case 4: nested.push_back(file.get_view()); break;
        case 5: enums.push_back(file.get_view()); break;
        default: file.skip();
      }
    for (const data_view& m : nested) read_message(pbf_reader(m), package);
    for (const data_view& e : enums) read_enum(pbf_reader(e), package);
  }

  void read_message(pbf_reader message, const std::string& scope) {
    MessageDef out;
    std::vector<data_view> nested, enums;
    while (message.next()) switch (message.tag()) {
        case 1: out.name = message.get_string(); break;
        case 2: read_field(message.get_message(), out); break;
        case 3: nested.push_back(message.get_view()); break;
        case 4: enums.push_back(message.get_view()); break;
        case 7: out.is_map_entry = reads_true(message.get_message(), 7); break;
        case 8: out.oneofs.push_back(first_text(message.get_message())); break;
        default: message.skip();
      }
    const std::string full = scope + "." + out.name;
    constexpr std::string_view package = ".moka.proto.";
    out.name = full.substr(package.size());
    for (auto& [number, field] : out.fields)
      field.has_presence =
          field.oneof >= 0 || (field.kind == FieldKind::message && !field.repeated) || out.is_map_entry;
    for (const data_view& m : nested) read_message(pbf_reader(m), full);
    for (const data_view& e : enums) read_enum(pbf_reader(e), full);
    messages.emplace(full, std::move(out));
  }

  static bool reads_true(pbf_reader message, uint32_t field) {
    bool out = false;
    while (message.next())
      if (message.tag() == field)
        out = message.get_bool();
      else
        message.skip();
    return out;
  }

  static std::string first_text(pbf_reader message) { return message.next(1) ? message.get_string() : std::string(); }

  static void read_field(pbf_reader field, MessageDef& out) {
    FieldDef def;
    while (field.next()) switch (field.tag()) {
        case 1: def.name = field.get_string(); break;
        case 3: def.number = static_cast<uint32_t>(field.get_int32()); break;
        case 4: def.repeated = field.get_enum() == 3; break;
        case 5: set_kind(field.get_enum(), def); break;
        case 6: def.type_name = field.get_string(); break;
        case 9: def.oneof = field.get_int32(); break;
        default: field.skip();
      }
    if (def.number < first_own_field) out.fields.emplace(def.number, std::move(def));
  }

  /// The types that the specification uses.
  static void set_kind(int32_t type, FieldDef& def) {
    switch (type) {
      case 1: def.kind = FieldKind::float64; break;
      case 2: def.kind = FieldKind::float32; break;
      case 3: def.kind = FieldKind::integer; break;
      case 4: def.kind = FieldKind::unsigned_integer; break;
      case 5: def.kind = FieldKind::integer, def.is_narrow = true; break;
      case 8: def.kind = FieldKind::boolean; break;
      case 9: def.kind = FieldKind::text; break;
      case 11: def.kind = FieldKind::message; break;
      case 12: def.kind = FieldKind::bytes; break;
      case 13: def.kind = FieldKind::unsigned_integer, def.is_narrow = true; break;
      case 14: def.kind = FieldKind::enumerator; break;
      default: break;
    }
  }

  void read_enum(pbf_reader message, const std::string& scope) {
    std::string name;
    EnumDef out;
    while (message.next()) switch (message.tag()) {
        case 1: name = message.get_string(); break;
        case 2: {
          pbf_reader value = message.get_message();
          std::string enumerator;
          int32_t number = 0;
          while (value.next()) switch (value.tag()) {
              case 1: enumerator = value.get_string(); break;
              case 2: number = value.get_int32(); break;
              default: value.skip();
            }
          out.numbers.emplace(std::move(enumerator), number);
          break;
        }
        default: message.skip();
      }
    enums_.emplace(scope + "." + name, std::move(out));
  }

  std::map<std::string, EnumDef, std::less<>> enums_;
};

}  // namespace

std::string_view EnumDef::name_of(int32_t number) const {
  for (const auto& [name, n] : numbers)
    if (n == number) return name;
  return {};
}

bool FieldDef::is_map() const { return message != nullptr && message->is_map_entry; }

const FieldDef* MessageDef::find(uint32_t number) const {
  const auto it = fields.find(number);
  return it == fields.end() ? nullptr : &it->second;
}

const FieldDef* MessageDef::find(std::string_view field) const {
  for (const auto& [number, def] : fields)
    if (def.name == field) return &def;
  return nullptr;
}

const MessageDef* find_message(std::string_view name) { return Schema::get().find(name); }

std::vector<std::string> message_names() {
  std::vector<std::string> out;
  for (const auto& [full, message] : Schema::get().messages)
    if (!message.is_map_entry) out.push_back(message.name);
  return out;
}

}  // namespace moka::format
