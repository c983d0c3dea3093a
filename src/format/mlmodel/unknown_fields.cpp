#include "format/mlmodel/unknown_fields.h"

#include <algorithm>
#include <map>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <set>

#include "format/mlmodel/payload_cutter.h"

namespace moka::format {

/// The descriptors of src/format/proto as protoc writes them (FileDescriptorSet), embedded by the build.
extern const unsigned char schema_bytes[];
extern const unsigned long schema_size;

namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

struct Message;
struct Enum {
  std::set<int32_t> numbers;
};

struct FieldDef {
  std::string name, type_name;
  const Message* message = nullptr;  ///< set for message fields
  const Enum* values = nullptr;      ///< set for enum fields
};

struct Message {
  std::map<uint32_t, FieldDef> fields;
};

/// All messages of the specification by full name, ".moka.proto.Model".
class Schema {
 public:
  static const Schema& get() {
    static const Schema schema;
    return schema;
  }
  const Message* find(std::string_view name) const {
    const auto it = messages_.find(name);
    return it == messages_.end() ? nullptr : &it->second;
  }

 private:
  // The field numbers below are those of google/protobuf/descriptor.proto.
  Schema() {
    pbf_reader set(reinterpret_cast<const char*>(schema_bytes), schema_size);
    while (set.next(1)) read_file(set.get_message());
    for (auto& [name, message] : messages_)
      for (auto& [number, field] : message.fields) {
        field.message = find(field.type_name);
        if (const auto it = enums_.find(field.type_name); it != enums_.end()) field.values = &it->second;
      }
  }

  void read_file(pbf_reader file) {
    std::string package;
    std::vector<data_view> messages, enums;
    while (file.next()) switch (file.tag()) {
        case 2: package = "." + file.get_string(); break;
        case 4: messages.push_back(file.get_view()); break;
        case 5: enums.push_back(file.get_view()); break;
        default: file.skip();
      }
    for (const data_view& m : messages) read_message(pbf_reader(m), package);
    for (const data_view& e : enums) read_enum(pbf_reader(e), package);
  }

  void read_message(pbf_reader message, const std::string& scope) {
    std::string name;
    Message out;
    std::vector<data_view> nested, enums;
    while (message.next()) switch (message.tag()) {
        case 1: name = message.get_string(); break;
        case 2: read_field(message.get_message(), out); break;
        case 3: nested.push_back(message.get_view()); break;
        case 4: enums.push_back(message.get_view()); break;
        default: message.skip();
      }
    const std::string full = scope + "." + name;
    for (const data_view& m : nested) read_message(pbf_reader(m), full);
    for (const data_view& e : enums) read_enum(pbf_reader(e), full);
    messages_.emplace(full, std::move(out));
  }

  static void read_field(pbf_reader field, Message& out) {
    FieldDef def;
    uint32_t number = 0;
    while (field.next()) switch (field.tag()) {
        case 1: def.name = field.get_string(); break;
        case 3: number = static_cast<uint32_t>(field.get_int32()); break;
        case 6: def.type_name = field.get_string(); break;
        default: field.skip();
      }
    out.fields.emplace(number, std::move(def));
  }

  void read_enum(pbf_reader message, const std::string& scope) {
    std::string name;
    Enum out;
    while (message.next()) switch (message.tag()) {
        case 1: name = message.get_string(); break;
        case 2: {
          pbf_reader value = message.get_message();
          int32_t number = 0;
          while (value.next())
            if (value.tag() == 2)
              number = value.get_int32();
            else
              value.skip();
          out.numbers.insert(number);
          break;
        }
        default: message.skip();
      }
    enums_.emplace(scope + "." + name, std::move(out));
  }

  std::map<std::string, Message, std::less<>> messages_;
  std::map<std::string, Enum, std::less<>> enums_;
};

class Walker {
 public:
  std::vector<std::string> found;

  void walk(data_view bytes, const Message& message, const std::string& path, int depth) {
    constexpr size_t kMost = 8;
    if (depth > max_message_depth) return;
    pbf_reader reader(bytes);
    while (found.size() < kMost && reader.next()) {
      const auto it = message.fields.find(reader.tag());
      if (it == message.fields.end()) {
        add(cat(path, path.empty() ? "field " : ": field ", reader.tag()));
        reader.skip();
        continue;
      }
      const FieldDef& field = it->second;
      const bool delimited = reader.wire_type() == pbf_wire_type::length_delimited;
      if (field.message != nullptr && delimited) {
        walk(reader.get_view(), *field.message, cat(path, path.empty() ? "" : ".", field.name), depth + 1);
      } else if (field.values != nullptr && reader.wire_type() == pbf_wire_type::varint) {
        const int32_t number = reader.get_enum();
        if (!field.values->numbers.contains(number)) add(cat(path, path.empty() ? "" : ": ", field.name, " ", number));
      } else {
        reader.skip();
      }
    }
  }

 private:
  void add(std::string what) {
    if (std::find(found.begin(), found.end(), what) == found.end()) found.push_back(std::move(what));
  }
};

}  // namespace

std::vector<std::string> unknown_fields(const Bytes& message, std::string_view type) {
  Walker walker;
  if (const Message* root = Schema::get().find(cat(".moka.proto.", type))) try {
      walker.walk(data_view(message.text().data(), message.size()), *root, {}, 0);
    } catch (const protozero::exception&) {
      // The decoder reports the problem.
    }
  return std::move(walker.found);
}

}  // namespace moka::format
