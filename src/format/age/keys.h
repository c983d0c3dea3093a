// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/error.h"
#include "format/age/header.h"

namespace moka::format::age {

/// An X25519 key pair in age's text form.
struct KeyPair {
  std::string identity;   ///< secret: "AGE-SECRET-KEY-1..."
  std::string recipient;  ///< public: "age1..."
};
Result<KeyPair> new_key_pair();

/// The secret keys of a text: one identity a line, empty lines and comments (#). Errors: malformed (names the line),
/// unsupported (kinds of identities other than X25519), not_found (no identity).
Result<std::vector<Secret>> read_identities(std::string_view text);
/// The text of a secret key's recipient.
std::string recipient_of(const Secret& identity);

using PublicKey = std::array<unsigned char, 32>;
/// The public keys of a text: one recipient a line, empty lines and comments (#). Errors as read_identities.
Result<std::vector<PublicKey>> read_recipients(std::string_view text);

/// Who may open a file: recipients, or everybody with the passphrase.
struct Lock {
  std::vector<PublicKey> recipients;
  std::string passphrase;
  unsigned work_factor = 18;  ///< scrypt's N is 2 to this; 18 takes 256 MiB and about a second
};

/// Copies of the file key for every recipient. Errors: invalid_argument (nobody, both, or a recipient that is not a
/// valid point).
Result<std::vector<Stanza>> wrap(const Secret& file_key, const Lock& lock);

enum class Wanted { identity, passphrase };
/// Returns the text of identities or the passphrase. Errors: not_found.
using KeySource = std::function<Result<std::string>(Wanted)>;

/// The file key of a header, whose MAC the caller checks. Errors: invalid_argument (the key does not fit), malformed,
/// unsupported (recipients of other kinds, a work factor above 22), out_of_budget, those of `keys`.
Result<Secret> unwrap(const Header& header, const KeySource& keys, MemoryBudget* budget);

}  // namespace moka::format::age
