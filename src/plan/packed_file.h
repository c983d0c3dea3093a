// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"

/// The file format of packed constants: a header, an index with a scope and keys, and the data, each with a checksum.
namespace moka::plan {

struct PackedFile {
  struct Entry {
    Bytes bytes;  ///< 64-byte aligned in the file and followed by 64 readable bytes
    uint64_t sum = 0;
    bool whole() const;  ///< verifies the checksum; reads all bytes
  };
  std::string scope;  ///< what the packed bytes depend on besides their keys
  std::string model;  ///< name for users
  std::map<std::string, Entry, std::less<>> entries;
};

/// Views into `file`. Checks the index but not the entries. Errors: malformed, unsupported (another version).
Result<PackedFile> parse_packed_file(const Bytes& file);

struct PackedPiece {
  std::string key;
  std::span<const std::byte> bytes;
};
/// Replaces the file at `path` atomically and creates its folder. Error io.
Status write_packed_file(const std::string& path, std::string_view scope, std::string_view model,
                         std::span<const PackedPiece> pieces);

}  // namespace moka::plan
