// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/age/keys.h"
#include "format/age/stream.h"

/// Files in the format age v1 (age-encryption.org/v1): X25519 recipients and passphrases.
namespace moka::format::age {

/// Whether the bytes begin like a file that age encrypted, in binary or text form.
bool is_encrypted(const Bytes& file);

/// The content of an encrypted file. Verifies all of it first, but decrypts a block only when it is read
/// (base/lazy_memory.h). Identities that `keys` returns may themselves be encrypted with a passphrase. Errors: those of
/// read_header, unwrap, open_stream and map_blocks; malformed (the header was altered).
Result<Bytes> open(const Bytes& file, const KeySource& keys, MemoryBudget* budget = nullptr);

/// Encrypts with a new key. Errors: those of wrap and `sink`.
Status encrypt(const Rope& content, const Lock& lock, const Sink& sink);

}  // namespace moka::format::age
