// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodel/unknown_fields.h"

#include <algorithm>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include "base/error.h"
#include "format/message/schema.h"
#include "format/mlmodel/payload_cutter.h"

namespace moka::format {
namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

/// Fields that a prediction does not read.
bool is_unused(const MessageDef& message, const FieldDef& field) {
  struct Unused {
    std::string_view message, field;
  };
  constexpr Unused all[] = {{"ModelDescription", "metadata"},           {"ModelDescription", "trainingInput"},
                            {"NeuralNetwork", "updateParams"},          {"NeuralNetworkClassifier", "updateParams"},
                            {"NeuralNetworkRegressor", "updateParams"}, {"MILSpec.Program", "attributes"}};
  return std::any_of(std::begin(all), std::end(all),
                     [&](const Unused& u) { return u.message == message.name && u.field == field.name; });
}

class UnknownFieldWalker {
 public:
  UnknownFields found;

  void walk(data_view bytes, const MessageDef& message, const std::string& path, int depth, bool needed) {
    if (depth > max_message_depth) return;
    pbf_reader reader(bytes);
    while (found.needed.size() < most && reader.next()) {
      const FieldDef* field = message.find(reader.tag());
      if (field == nullptr) {
        add(cat(path, path.empty() ? "field " : ": field ", reader.tag()), needed);
        reader.skip();
        continue;
      }
      const bool delimited = reader.wire_type() == pbf_wire_type::length_delimited;
      if (field->message != nullptr && delimited) {
        walk(reader.get_view(), *field->message, cat(path, path.empty() ? "" : ".", field->name), depth + 1,
             needed && !is_unused(message, *field));
      } else if (field->enumeration != nullptr && reader.wire_type() == pbf_wire_type::varint) {
        const int32_t number = reader.get_enum();
        if (field->enumeration->name_of(number).empty())
          add(cat(path, path.empty() ? "" : ": ", field->name, " ", number), needed);
      } else {
        reader.skip();
      }
    }
  }

 private:
  static constexpr size_t most = 8;

  void add(std::string what, bool needed) {
    std::vector<std::string>& list = needed ? found.needed : found.ignored;
    if (list.size() < most && std::find(list.begin(), list.end(), what) == list.end()) list.push_back(std::move(what));
  }
};

}  // namespace

UnknownFields unknown_fields(const Bytes& message, std::string_view type) {
  UnknownFieldWalker walker;
  if (const MessageDef* root = find_message(type)) try {
      walker.walk(data_view(message.text().data(), message.size()), *root, {}, 0, true);
    } catch (const protozero::exception&) {
      // The decoder reports the problem.
    }
  return std::move(walker.found);
}

}  // namespace moka::format
