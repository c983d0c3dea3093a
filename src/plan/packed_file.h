#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"

/// The file that keeps packed constants: a header, an index with a scope and keys, and the bytes, each with a checksum.
namespace moka::plan {

struct PackedFile {
  struct Entry {
    Bytes bytes;  ///< 64-byte aligned in the file, 64 readable bytes behind its end
    uint64_t sum = 0;
    bool whole() const;  ///< reads all of it
  };
  std::string scope;  ///< what the packed bytes depend on beside their keys
  std::string model;  ///< for people
  std::map<std::string, Entry, std::less<>> entries;
};

/// Views into `file`, whose index is checked and whose entries are not. Errors: malformed, unsupported (another
/// version).
Result<PackedFile> parse_packed_file(const Bytes& file);

struct PackedPiece {
  std::string key;
  std::span<const std::byte> bytes;
};
/// Replaces the file at `path` at once; makes its folder. Error io.
Status write_packed_file(const std::string& path, std::string_view scope, std::string_view model,
                         std::span<const PackedPiece> pieces);

}  // namespace moka::plan
