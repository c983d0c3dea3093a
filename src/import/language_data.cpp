// SPDX-License-Identifier: Apache-2.0
#include "import/language_data.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace moka::import {

namespace {

/// The start of a container, in little-endian order.
struct Header {
  uint32_t magic;
  uint16_t method, kind;
  uint16_t revision, unknown;
  uint32_t parts;
};
constexpr uint32_t kMagic = 0x0956d3de;

/// The numbers are known from a published classifier and from the framework's behavior.
std::string_view method_name(uint16_t method) {
  switch (method) {
    case 4: return " (maximum entropy)";
    case 7: return " (gazetteer)";
    case 8: return " (word embedding)";
    default: return "";
  }
}

std::string first_bytes(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 4); ++i) {
    const auto b = static_cast<unsigned char>(bytes[i]);
    out += cat(i == 0 ? " that begin with " : " ", kDigits[b >> 4], kDigits[b & 15]);
  }
  return out;
}

}  // namespace

std::string form_of_language_data(const std::string& bytes) {
  const std::string size = cat(bytes.size(), " bytes");
  Header header;
  if (bytes.size() < sizeof header) return size + first_bytes(bytes);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic == kMagic)
    return cat(size, " in a container of Natural Language with method ", header.method, method_name(header.method),
               " and ", header.parts, " parts");
  if (bytes.starts_with("bplist00")) return size + " in a property list";
  return size + first_bytes(bytes);
}

}  // namespace moka::import
