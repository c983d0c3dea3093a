// SPDX-License-Identifier: Apache-2.0
#include "format/age/bech32.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

namespace moka::format::age {
namespace {

constexpr std::string_view kLetters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
constexpr size_t kChecksum = 6;

uint32_t step(uint32_t sum, unsigned value) {
  constexpr std::array<uint32_t, 5> generator = {0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3};
  const uint32_t top = sum >> 25;
  sum = ((sum & 0x1ffffff) << 5) ^ value;
  for (size_t i = 0; i < generator.size(); ++i)
    if ((top >> i) & 1) sum ^= generator[i];
  return sum;
}

uint32_t checksum_of_prefix(std::string_view prefix) {
  uint32_t sum = 1;
  for (const char c : prefix) sum = step(sum, static_cast<unsigned char>(c) >> 5);
  sum = step(sum, 0);
  for (const char c : prefix) sum = step(sum, static_cast<unsigned char>(c) & 31);
  return sum;
}

}  // namespace

std::string bech32(std::string_view prefix, std::span<const unsigned char> bytes) {
  std::string out(prefix);
  out += '1';
  uint32_t sum = checksum_of_prefix(prefix);
  auto put = [&](unsigned value) {
    sum = step(sum, value);
    out += kLetters[value];
  };
  unsigned held = 0, bits = 0;
  for (const unsigned char b : bytes) {
    held = (held << 8 | b) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) put((held >> (bits - 5)) & 31);
  }
  if (bits > 0) put((held << (5 - bits)) & 31);
  for (size_t i = 0; i < kChecksum; ++i) sum = step(sum, 0);
  sum ^= 1;
  for (size_t i = 0; i < kChecksum; ++i) out += kLetters[(sum >> (5 * (kChecksum - 1 - i))) & 31];
  return out;
}

Result<std::vector<unsigned char>> read_bech32(std::string_view text, std::string_view prefix) {
  const bool upper = std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  const bool lower = std::any_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (upper && lower) return fail(ErrorCode::malformed, "the key mixes letters of upper and lower case");
  std::string plain(text);
  for (char& c : plain) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const size_t one = plain.rfind('1');
  if (one == std::string::npos || plain.substr(0, one) != prefix || plain.size() - one - 1 < kChecksum)
    return fail(ErrorCode::malformed, "the key does not begin with '", prefix, "1' or is cut off");
  uint32_t sum = checksum_of_prefix(prefix);
  std::vector<unsigned char> out;
  unsigned held = 0, bits = 0;
  for (size_t i = one + 1; i < plain.size(); ++i) {
    const size_t value = kLetters.find(plain[i]);
    if (value == std::string_view::npos)
      return fail(ErrorCode::malformed, "character ", i + 1, " of the key is not one of its alphabet");
    sum = step(sum, static_cast<unsigned>(value));
    if (i + kChecksum >= plain.size()) continue;
    held = (held << 5 | static_cast<unsigned>(value)) & 0xfff;
    if ((bits += 5) >= 8) out.push_back(static_cast<unsigned char>(held >> (bits -= 8)));
  }
  if (sum != 1) return fail(ErrorCode::malformed, "the checksum of the key does not match: it was mistyped");
  if (bits >= 5 || (held & ((1U << bits) - 1)) != 0) return fail(ErrorCode::malformed, "the key has stray bits");
  return out;
}

}  // namespace moka::format::age
