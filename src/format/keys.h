#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace moka::format {

/// Gives what opens an encrypted model: the text of age identities ("AGE-SECRET-KEY-1..."), or the passphrase. `model`:
/// its path; empty for a model in memory. An empty result: there is none.
using KeySource = std::function<Result<std::string>(const std::string& model, bool passphrase)>;

/// The source for models that are opened without one.
void set_default_key_source(KeySource source);

/// The key from `source` or the default source, or if they have none from the environment: MOKA_IDENTITY (the text of
/// identities, or the path of a file with it), MOKA_PASSPHRASE, or MOKA_PASSPHRASE_FILE (the first line of a file).
/// Errors: invalid_argument (there is no key), unsupported (a key of Apple's), those of reading the file and of
/// `source`.
Result<std::string> key_of(const KeySource& source, const std::string& model, bool passphrase);

/// The text of identities in a file. Errors: not_found, io, unsupported (an .mlmodelkey).
Result<std::string> read_identity_file(const std::string& path);
/// The first line of a file. Errors: not_found, io.
Result<std::string> read_passphrase_file(const std::string& path);

/// Error unsupported if the path is that of an .mlmodelkey.
Status refuse_apple_key(const std::string& path);

}  // namespace moka::format
