// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "format/age/secret.h"

namespace moka::format::age {

constexpr std::string_view kIntro = "age-encryption.org/v1\n";
constexpr size_t kFileKey = 16, kMac = 32, kTag = 16;

/// One recipient's copy of the file key.
struct Stanza {
  std::string type;
  std::vector<std::string> arguments;
  std::vector<unsigned char> body;
};

struct Header {
  std::vector<Stanza> stanzas;
  std::array<unsigned char, kMac> mac{};
  size_t authenticated = 0;  ///< bytes that the MAC covers: to the end of "---"
  size_t size = 0;           ///< bytes of the header
};

/// Errors: malformed (names the line), unsupported (a later version of age).
Result<Header> read_header(const Bytes& file);
/// The text of a header for a file key.
std::string write_header(const std::vector<Stanza>& stanzas, const Secret& file_key);
/// Error malformed: the header was altered.
Status check_mac(const Bytes& file, const Header& header, const Secret& file_key);

/// HKDF with SHA-256, 32 bytes.
Secret derive(std::span<const unsigned char> secret, std::span<const unsigned char> salt, std::string_view purpose);

/// Base64 without padding.
std::string base64_text(std::span<const unsigned char> bytes);
enum class Padding { no, yes };
/// Errors: malformed (characters, padding, stray bits).
Result<std::vector<unsigned char>> read_base64(std::string_view text, Padding padding = Padding::no);

}  // namespace moka::format::age
