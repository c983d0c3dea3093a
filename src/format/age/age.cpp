// SPDX-License-Identifier: Apache-2.0
#include "format/age/age.h"

#include "format/age/armor.h"

namespace moka::format::age {
namespace {

/// Decrypts identities that are themselves encrypted with a passphrase.
KeySource with_locked_identities(const KeySource& keys, MemoryBudget* budget) {
  return [&keys, budget](Wanted wanted) -> Result<std::string> {
    std::string text = MOKA_TRY(keys(wanted));
    if (wanted != Wanted::identity) return text;
    const Bytes file{std::as_bytes(std::span(text)), nullptr};
    if (!is_encrypted(file)) return text;
    const auto passphrase = [&](Wanted inner) -> Result<std::string> {
      if (inner == Wanted::passphrase) return keys(inner);
      return fail(ErrorCode::unsupported, "the identity is encrypted for another identity; expected a passphrase");
    };
    const Bytes opened = MOKA_TRY_IN(open(file, passphrase, budget), "identity");
    return std::string(opened.text());
  };
}

}  // namespace

bool is_encrypted(const Bytes& file) { return file.text().starts_with("age-encryption.org/") || is_armored(file); }

Result<Bytes> open(const Bytes& file, const KeySource& keys, MemoryBudget* budget) {
  if (sodium_init() < 0) return fail(ErrorCode::internal, "libsodium cannot be initialized");
  const Bytes binary = is_armored(file) ? MOKA_TRY(read_armor(file)) : file;
  const Header header = MOKA_TRY(read_header(binary));
  const Secret file_key = MOKA_TRY(unwrap(header, with_locked_identities(keys, budget), budget));
  MOKA_TRY(check_mac(binary, header, file_key));
  return map_blocks(MOKA_TRY(open_stream(binary, header.size, file_key)));
}

Status encrypt(const Rope& content, const Lock& lock, const Sink& sink) {
  if (sodium_init() < 0) return fail(ErrorCode::internal, "libsodium cannot be initialized");
  Secret file_key(kFileKey);
  randombytes_buf(file_key.data(), file_key.size());
  const std::string header = write_header(MOKA_TRY(wrap(file_key, lock)), file_key);
  MOKA_TRY(sink(std::as_bytes(std::span(header))));
  return write_stream(content, file_key, sink);
}

}  // namespace moka::format::age
