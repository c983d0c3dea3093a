// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace moka::format {

/// Returns the key of an encrypted model: the passphrase if `passphrase` is true, else the text of age identities
/// ("AGE-SECRET-KEY-1..."). `model`: its path; empty for a model in memory. Returns an empty text if there is no key.
using KeySource = std::function<Result<std::string>(const std::string& model, bool passphrase)>;

/// Sets the source for models that are opened without a source of their own.
void set_default_key_source(KeySource source);

/// The key from `source` or the default source. If they have no key, the environment gives it: MOKA_IDENTITY (the text
/// of identities, or the path of a file with it), MOKA_PASSPHRASE, or MOKA_PASSPHRASE_FILE (the first line of a file).
/// Errors: invalid_argument (there is no key), unsupported (one of Apple's keys), those of reading the file and of
/// `source`.
Result<std::string> key_of(const KeySource& source, const std::string& model, bool passphrase);

/// The text of identities in a file. Errors: not_found, io, unsupported (an .mlmodelkey).
Result<std::string> read_identity_file(const std::string& path);
/// The first line of a file. Errors: not_found, io.
Result<std::string> read_passphrase_file(const std::string& path);

/// Error unsupported if the path is that of an .mlmodelkey.
Status refuse_apple_key(const std::string& path);

}  // namespace moka::format
