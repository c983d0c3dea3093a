// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace moka::format {

/// How a field is encoded.
enum class FieldKind : uint8_t {
  integer,
  unsigned_integer,
  boolean,
  enumerator,
  float32,
  float64,
  text,
  bytes,
  message
};

struct MessageDef;

struct EnumDef {
  std::map<std::string, int32_t, std::less<>> numbers;  ///< by name
  std::string_view name_of(int32_t number) const;       ///< empty when unknown
};

struct FieldDef {
  std::string name;
  uint32_t number = 0;
  FieldKind kind = FieldKind::integer;
  bool repeated = false;
  bool is_narrow = false;                ///< integers of 32 bits
  bool has_presence = false;             ///< a default value is written, too: messages and members of a oneof
  int oneof = -1;                        ///< index in MessageDef::oneofs
  const MessageDef* message = nullptr;   ///< set for messages
  const EnumDef* enumeration = nullptr;  ///< set for enumerators
  std::string type_name;                 ///< of messages and enumerators, as the descriptor writes it
  bool is_map() const;
};

/// A message of the specification.
struct MessageDef {
  std::string name;  ///< without the package: "NeuralNetworkLayer", "MILSpec.Program"
  bool is_map_entry = false;
  std::map<uint32_t, FieldDef> fields;
  std::vector<std::string> oneofs;

  const FieldDef* find(uint32_t number) const;
  const FieldDef* find(std::string_view name) const;
};

/// The message `name`, or nullptr. "MILSpec." and "CoreMLModels." may be omitted. Moka's own fields are not part of it.
const MessageDef* find_message(std::string_view name);

/// The names of all messages, sorted, without map entries.
std::vector<std::string> message_names();

}  // namespace moka::format
