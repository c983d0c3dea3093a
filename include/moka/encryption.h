// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "moka/model.h"
#include "moka/output.h"

namespace moka {

/// An X25519 key pair in the text form of age (age-encryption.org/v1).
struct KeyPair {
  std::string identity;   ///< secret: "AGE-SECRET-KEY-1..."
  std::string recipient;  ///< public: "age1..."
};
MOKA_EXPORT KeyPair generate_key_pair();
/// The recipient of each identity in a text. Throws invalid_argument, not_found.
MOKA_EXPORT std::vector<std::string> recipients_of(const std::string& identities);

/// Who can open an encrypted model: the recipients, or everybody with the passphrase.
struct EncryptionOptions {
  std::vector<std::string> recipients;  ///< "age1..."
  std::string passphrase;
  unsigned work_factor = 18;  ///< of the passphrase, 1 to 22: 2^18 takes 256 MiB and about a second
  Overwrite overwrite = Overwrite::own_kind;
  /// Called with the number of bytes that are done and of all bytes. Optional.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

/// Encrypts a model into one file in the format age v1: an .mlpackage or .mlmodelc folder as a tar archive, an .mlmodel
/// as it is. Every age tool opens it. `destination` appears when the file is complete. Throws invalid_argument
/// (recipients, a model that is encrypted already), not_found, io, and what opening the model throws.
MOKA_EXPORT void encrypt_model(const std::filesystem::path& path, const std::filesystem::path& destination,
                               const EncryptionOptions& options);
/// Writes the model in an encrypted file as plain files: a folder, or a file for an .mlmodel. `key`: as
/// ModelConfiguration::key. Throws invalid_argument (key, `destination`), malformed (altered or cut off), io.
MOKA_EXPORT void decrypt_model(const std::filesystem::path& path, const std::filesystem::path& destination,
                               const KeySource& key = nullptr, Overwrite overwrite = Overwrite::own_kind);

/// Encrypts bytes in the same format, for example identities with a passphrase.
MOKA_EXPORT std::vector<std::byte> encrypt(std::span<const std::byte> bytes, const EncryptionOptions& options);

/// The keys for models that are opened without ModelConfiguration::key, such as those of Inspection::open. Null: the
/// environment only.
MOKA_EXPORT void set_key_source(KeySource source);
/// The identities in a file, which may be a pipe. Throws not_found, io, unsupported (an .mlmodelkey).
MOKA_EXPORT std::string read_identity_file(const std::filesystem::path& path);
/// The first line of a file. Throws not_found, io, invalid_argument (empty).
MOKA_EXPORT std::string read_passphrase_file(const std::filesystem::path& path);

}  // namespace moka
