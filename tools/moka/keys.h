// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "arguments.h"

namespace moka::cli {

/// The options that give the keys of encrypted models.
struct KeyOptions {
  std::vector<std::string> identities;  ///< files
  std::string passphrase_file;
};
void add_key_options(Arguments app, KeyOptions& options);

/// Makes these options, the environment and a question on the terminal the source of keys.
void use_keys(const KeyOptions& options);

/// The passphrase for what is encrypted: from the file, else MOKA_PASSPHRASE or MOKA_PASSPHRASE_FILE, else asked twice
/// on the terminal. Throws UsageError.
std::string new_passphrase(const std::string& file);

}  // namespace moka::cli
