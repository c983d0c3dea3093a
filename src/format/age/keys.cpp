// SPDX-License-Identifier: Apache-2.0
#include "format/age/keys.h"

#include <algorithm>
#include <optional>

#include "format/age/bech32.h"

namespace moka::format::age {
namespace {

constexpr std::string_view kIdentity = "age-secret-key-", kRecipient = "age";
constexpr std::string_view kX25519 = "X25519", kScrypt = "scrypt";
constexpr std::string_view kX25519Purpose = "age-encryption.org/v1/X25519",
                           kScryptPurpose = "age-encryption.org/v1/scrypt";
constexpr size_t kPoint = crypto_scalarmult_curve25519_BYTES, kSalt = 16;
constexpr unsigned kMostWork = 22;
constexpr size_t kScryptBlock = 8;  // r
constexpr std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES> kZeroNonce{};

using Octets = std::vector<unsigned char>;

/// The lines of a text that are neither empty nor comments, with their numbers.
template <class Visit>
Status each_line(std::string_view text, const Visit& visit) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    MOKA_TRY_IN(visit(line), cat("line ", number));
  }
  return {};
}

Octets public_key(const Secret& identity) {
  Octets out(kPoint);
  crypto_scalarmult_curve25519_base(out.data(), identity.data());
  return out;
}

Octets seal(const Secret& key, const Secret& file_key) {
  Octets body(kFileKey + kTag);
  crypto_aead_chacha20poly1305_ietf_encrypt(body.data(), nullptr, file_key.data(), file_key.size(), nullptr, 0, nullptr,
                                            kZeroNonce.data(), key.data());
  return body;
}

std::optional<Secret> unseal(const Secret& key, const Octets& body) {
  Secret out(kFileKey);
  if (crypto_aead_chacha20poly1305_ietf_decrypt(out.data(), nullptr, nullptr, body.data(), body.size(), nullptr, 0,
                                                kZeroNonce.data(), key.data()) != 0)
    return std::nullopt;
  return out;
}

Secret x25519_key(const Secret& shared, std::span<const unsigned char> share,
                  std::span<const unsigned char> recipient) {
  Octets salt(share.begin(), share.end());
  salt.insert(salt.end(), recipient.begin(), recipient.end());
  return derive({shared.data(), shared.size()}, salt, kX25519Purpose);
}

Result<Secret> scrypt_key(std::string_view passphrase, const Octets& salt, unsigned work, MemoryBudget* budget) {
  const uint64_t n = uint64_t{1} << work;
  const size_t memory = 128 * kScryptBlock * n;
  if (budget != nullptr) MOKA_TRY(budget->take(memory, "deriving the key from the passphrase"));
  Octets whole(kScryptPurpose.begin(), kScryptPurpose.end());
  whole.insert(whole.end(), salt.begin(), salt.end());
  Secret out(crypto_aead_chacha20poly1305_ietf_KEYBYTES);
  const int failed =
      crypto_pwhash_scryptsalsa208sha256_ll(reinterpret_cast<const uint8_t*>(passphrase.data()), passphrase.size(),
                                            whole.data(), whole.size(), n, kScryptBlock, 1, out.data(), out.size());
  if (budget != nullptr) budget->give_back(memory);
  if (failed != 0)
    return fail(ErrorCode::out_of_budget, "no memory to derive the key from the passphrase: ", memory, " bytes");
  return out;
}

Error bad(const Stanza& stanza, std::string_view what) {
  return fail(ErrorCode::malformed, "the encrypted file's recipient of type ", stanza.type, ": ", what);
}

Status check_body(const Stanza& stanza) {
  if (stanza.body.size() != kFileKey + kTag) return bad(stanza, "expected 32 bytes of a wrapped key");
  return {};
}

Result<Octets> argument(const Stanza& stanza, size_t index, size_t size) {
  Octets out = MOKA_TRY(read_base64(stanza.arguments[index]));
  if (out.size() != size) return bad(stanza, cat("expected an argument of ", size, " bytes, got ", out.size()));
  return out;
}

Result<unsigned> work_factor(const Stanza& stanza) {
  const std::string& text = stanza.arguments[1];
  constexpr size_t most_digits = 2;
  if (text.empty() || text[0] == '0' ||
      !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return bad(stanza, cat("expected a work factor, got '", text, "'"));
  const unsigned work = text.size() > most_digits ? kMostWork + 1 : static_cast<unsigned>(std::stoul(text));
  if (work > kMostWork)
    return fail(ErrorCode::unsupported, "the passphrase's work factor ", text, " is above the limit of ", kMostWork);
  return work;
}

Result<Secret> unwrap_scrypt(const Header& header, const KeySource& keys, MemoryBudget* budget) {
  const Stanza& stanza =
      *std::find_if(header.stanzas.begin(), header.stanzas.end(), [](const Stanza& s) { return s.type == kScrypt; });
  if (header.stanzas.size() != 1) return bad(stanza, "a passphrase must be the only recipient");
  if (stanza.arguments.size() != 2) return bad(stanza, "expected a salt and a work factor");
  const Octets salt = MOKA_TRY(argument(stanza, 0, kSalt));
  const unsigned work = MOKA_TRY(work_factor(stanza));
  MOKA_TRY(check_body(stanza));
  std::string passphrase = MOKA_TRY(keys(Wanted::passphrase));
  const Wiper wiper(passphrase);
  const Secret key = MOKA_TRY(scrypt_key(passphrase, salt, work, budget));
  if (auto found = unseal(key, stanza.body)) return *std::move(found);
  return fail(ErrorCode::invalid_argument, "the passphrase is wrong");
}

Result<std::optional<Secret>> unwrap_x25519(const Stanza& stanza, const Secret& identity) {
  if (stanza.arguments.size() != 1) return bad(stanza, "expected one argument");
  const Octets share = MOKA_TRY(argument(stanza, 0, kPoint));
  MOKA_TRY(check_body(stanza));
  Secret shared(kPoint);
  if (crypto_scalarmult_curve25519(shared.data(), identity.data(), share.data()) != 0)
    return bad(stanza, "its share is not a valid point");
  return unseal(x25519_key(shared, share, public_key(identity)), stanza.body);
}

}  // namespace

Result<KeyPair> new_key_pair() {
  Secret secret(kPoint);
  randombytes_buf(secret.data(), secret.size());
  std::string identity = bech32(kIdentity, {secret.data(), secret.size()});
  for (char& c : identity) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return KeyPair{std::move(identity), recipient_of(secret)};
}

std::string recipient_of(const Secret& identity) { return bech32(kRecipient, public_key(identity)); }

Result<std::vector<Secret>> read_identities(std::string_view text) {
  std::vector<Secret> out;
  MOKA_TRY(each_line(text, [&](std::string_view line) -> Status {
    if (!line.starts_with("AGE-SECRET-KEY-1")) {
      const bool other =
          line.starts_with("AGE-PLUGIN-") || line.starts_with("AGE-SECRET-KEY-") || line.starts_with("-----BEGIN");
      if (other)
        return fail(ErrorCode::unsupported, "expected an identity 'AGE-SECRET-KEY-1...', got one of another kind");
      return fail(ErrorCode::malformed, "expected an identity 'AGE-SECRET-KEY-1...'");
    }
    std::vector<unsigned char> bytes = MOKA_TRY(read_bech32(line, kIdentity));
    if (bytes.size() != kPoint)
      return fail(ErrorCode::malformed, "the identity has ", bytes.size(), " bytes, expected 32");
    Secret secret(kPoint);
    std::copy(bytes.begin(), bytes.end(), secret.data());
    sodium_memzero(bytes.data(), bytes.size());
    out.push_back(std::move(secret));
    return {};
  }));
  if (out.empty()) return fail(ErrorCode::not_found, "expected an identity 'AGE-SECRET-KEY-1...', got none");
  return out;
}

Result<std::vector<PublicKey>> read_recipients(std::string_view text) {
  std::vector<PublicKey> out;
  MOKA_TRY(each_line(text, [&](std::string_view line) -> Status {
    if (line.starts_with("AGE-SECRET-KEY-"))
      return fail(ErrorCode::malformed, "expected a recipient 'age1...', got an identity, which is secret");
    if (line.starts_with("ssh-")) return fail(ErrorCode::unsupported, "expected a recipient 'age1...', got an SSH key");
    const auto bytes = MOKA_TRY(read_bech32(line, kRecipient));
    if (bytes.size() != kPoint)
      return fail(ErrorCode::unsupported, "the recipient has ", bytes.size(), " bytes, expected 32 (X25519)");
    PublicKey key;
    std::copy(bytes.begin(), bytes.end(), key.begin());
    out.push_back(key);
    return {};
  }));
  if (out.empty()) return fail(ErrorCode::not_found, "expected a recipient 'age1...', got none");
  return out;
}

Result<std::vector<Stanza>> wrap(const Secret& file_key, const Lock& lock) {
  if (lock.recipients.empty() == lock.passphrase.empty())
    return fail(ErrorCode::invalid_argument, "expected recipients or a passphrase, got ",
                lock.recipients.empty() ? "neither" : "both");
  std::vector<Stanza> out;
  if (!lock.passphrase.empty()) {
    Octets salt(kSalt);
    randombytes_buf(salt.data(), salt.size());
    const Secret key = MOKA_TRY(scrypt_key(lock.passphrase, salt, lock.work_factor, nullptr));
    out.push_back({std::string(kScrypt), {base64_text(salt), cat(lock.work_factor)}, seal(key, file_key)});
  }
  for (const PublicKey& recipient : lock.recipients) {
    Secret once(kPoint), shared(kPoint);
    randombytes_buf(once.data(), once.size());
    const Octets share = public_key(once);
    if (crypto_scalarmult_curve25519(shared.data(), once.data(), recipient.data()) != 0)
      return fail(ErrorCode::invalid_argument, "recipient ", bech32(kRecipient, recipient), " is not a valid point");
    out.push_back({std::string(kX25519), {base64_text(share)}, seal(x25519_key(shared, share, recipient), file_key)});
  }
  return out;
}

Result<Secret> unwrap(const Header& header, const KeySource& keys, MemoryBudget* budget) {
  const auto has = [&](std::string_view type) {
    return std::any_of(header.stanzas.begin(), header.stanzas.end(), [&](const Stanza& s) { return s.type == type; });
  };
  if (has(kScrypt)) return unwrap_scrypt(header, keys, budget);
  if (!has(kX25519))
    return fail(ErrorCode::unsupported, "the file is encrypted for a recipient of type '", header.stanzas.front().type,
                "'; supported are X25519 and scrypt");
  std::string text = MOKA_TRY(keys(Wanted::identity));
  const Wiper wiper(text);
  const std::vector<Secret> identities = MOKA_TRY_IN(read_identities(text), "identity");
  for (const Stanza& stanza : header.stanzas)
    for (const Secret& identity : identities) {
      if (stanza.type != kX25519) continue;
      if (auto found = MOKA_TRY(unwrap_x25519(stanza, identity))) return *std::move(found);
    }
  return fail(ErrorCode::invalid_argument, "the file is encrypted for another identity than the ",
              identities.size() == 1 ? std::string("one") : cat(identities.size()), " given");
}

}  // namespace moka::format::age
