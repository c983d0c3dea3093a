// SPDX-License-Identifier: Apache-2.0
#include "format/age/header.h"

#include <algorithm>

namespace moka::format::age {
namespace {

constexpr size_t kStanzaColumns = 64, kLargestHeader = size_t{1} << 20;
constexpr std::string_view kArrow = "-> ", kFooter = "--- ";

Error bad_line(size_t line, std::string_view what) {
  return fail(ErrorCode::malformed, "line ", line, " of the encrypted file: ", what);
}

bool is_visible(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > 32 && c < 127; });
}

/// The lines of a header.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  Result<std::string_view> next() {
    ++number_;
    const size_t end = text_.substr(0, kLargestHeader).find('\n', at_);
    if (end == std::string_view::npos) return bad_line(number_, "the header is cut off");
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }
  size_t at() const { return at_; }
  size_t number() const { return number_; }

 private:
  std::string_view text_;
  size_t at_ = 0, number_ = 0;
};

Result<Stanza> read_stanza(std::string_view first, Lines& lines) {
  Stanza out;
  std::string_view rest = first.substr(kArrow.size());
  for (bool more = true; more;) {
    const size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    if (!is_visible(word)) return bad_line(lines.number(), "an argument is empty or has invalid characters");
    out.arguments.emplace_back(word);
    more = space != std::string_view::npos;
    if (more) rest = rest.substr(space + 1);
  }
  out.type = out.arguments.front();
  out.arguments.erase(out.arguments.begin());
  for (;;) {
    const std::string_view line = MOKA_TRY(lines.next());
    if (line.size() > kStanzaColumns) return bad_line(lines.number(), "it is longer than 64 characters");
    auto bytes = read_base64(line);
    if (!bytes.ok()) return bad_line(lines.number(), bytes.error().message());
    out.body.insert(out.body.end(), bytes->begin(), bytes->end());
    if (line.size() < kStanzaColumns) return out;
  }
}

std::array<unsigned char, kMac> mac_of(std::string_view text, const Secret& file_key) {
  const Secret key = derive({file_key.data(), file_key.size()}, {}, "header");
  std::array<unsigned char, kMac> out;
  crypto_auth_hmacsha256(out.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size(), key.data());
  return out;
}

}  // namespace

std::string base64_text(std::span<const unsigned char> bytes) {
  std::string out(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL_NO_PADDING), '\0');
  sodium_bin2base64(out.data(), out.size(), bytes.data(), bytes.size(), sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
  out.pop_back();
  return out;
}

Result<std::vector<unsigned char>> read_base64(std::string_view text, Padding padding) {
  const bool padded = padding == Padding::yes;
  std::vector<unsigned char> out(text.size() + 1);
  size_t size = 0;
  // libsodium 1.0.18 takes every byte from 128 on for '/'.
  const bool ascii = std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > 127; });
  if (!ascii ||
      sodium_base642bin(out.data(), out.size(), text.data(), text.size(), nullptr, &size, nullptr,
                        padded ? sodium_base64_VARIANT_ORIGINAL : sodium_base64_VARIANT_ORIGINAL_NO_PADDING) != 0)
    return fail(ErrorCode::malformed, padded ? "expected Base64" : "expected Base64 without padding");
  out.resize(size);
  return out;
}

Secret derive(std::span<const unsigned char> secret, std::span<const unsigned char> salt, std::string_view purpose) {
  crypto_auth_hmacsha256_state state;
  Secret extracted(crypto_auth_hmacsha256_BYTES), out(crypto_auth_hmacsha256_BYTES);
  constexpr unsigned char none = 0;  // libsodium copies from the salt, also from an empty one
  crypto_auth_hmacsha256_init(&state, salt.empty() ? &none : salt.data(), salt.size());
  crypto_auth_hmacsha256_update(&state, secret.data(), secret.size());
  crypto_auth_hmacsha256_final(&state, extracted.data());
  constexpr unsigned char first = 1;
  crypto_auth_hmacsha256_init(&state, extracted.data(), extracted.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(purpose.data()), purpose.size());
  crypto_auth_hmacsha256_update(&state, &first, 1);
  crypto_auth_hmacsha256_final(&state, out.data());
  sodium_memzero(&state, sizeof state);
  return out;
}

Result<Header> read_header(const Bytes& file) {
  const std::string_view text = file.text();
  if (!text.starts_with(kIntro)) {
    if (text.starts_with("age-encryption.org/"))
      return fail(ErrorCode::unsupported, "the encrypted file has version '",
                  text.substr(19, std::min<size_t>(text.find('\n'), 40) - 19), "' of age; supported is v1");
    return fail(ErrorCode::malformed, "expected a file that age encrypted");
  }
  Lines lines(text);
  MOKA_TRY(lines.next());
  Header out;
  for (;;) {
    const size_t begin = lines.at();
    const std::string_view line = MOKA_TRY(lines.next());
    if (line.starts_with(kArrow)) {
      out.stanzas.push_back(MOKA_TRY(read_stanza(line, lines)));
      continue;
    }
    if (!line.starts_with(kFooter)) return bad_line(lines.number(), "expected '-> ' or '--- '");
    const auto mac = read_base64(line.substr(kFooter.size()));
    if (!mac.ok()) return bad_line(lines.number(), mac.error().message());
    if (mac->size() != kMac) return bad_line(lines.number(), "expected 32 bytes of authentication");
    if (out.stanzas.empty()) return bad_line(lines.number(), "the file has no recipients");
    std::copy(mac->begin(), mac->end(), out.mac.begin());
    out.authenticated = begin + kFooter.size() - 1;
    out.size = lines.at();
    return out;
  }
}

std::string write_header(const std::vector<Stanza>& stanzas, const Secret& file_key) {
  std::string out(kIntro);
  for (const Stanza& stanza : stanzas) {
    out += cat("-> ", stanza.type);
    for (const std::string& argument : stanza.arguments) out += cat(" ", argument);
    out += '\n';
    const std::string body = base64_text(stanza.body);
    for (size_t at = 0; at <= body.size(); at += kStanzaColumns) out += cat(body.substr(at, kStanzaColumns), "\n");
  }
  out += kFooter.substr(0, kFooter.size() - 1);
  const std::string mac = base64_text(mac_of(out, file_key));
  return cat(out, " ", mac, "\n");
}

Status check_mac(const Bytes& file, const Header& header, const Secret& file_key) {
  const auto mac = mac_of(file.text().substr(0, header.authenticated), file_key);
  if (sodium_memcmp(mac.data(), header.mac.data(), kMac) != 0)
    return fail(ErrorCode::malformed, "the header of the encrypted file was altered");
  return {};
}

}  // namespace moka::format::age
