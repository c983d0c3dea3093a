// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"

namespace moka {

/// Immutable bytes and their owner: a file mapping, a buffer, or nothing (static data). Copies share the bytes; slices
/// never copy.
struct Bytes {
  std::span<const std::byte> span;
  std::shared_ptr<const void> owner;

  const std::byte* data() const { return span.data(); }
  size_t size() const { return span.size(); }
  bool empty() const { return span.empty(); }
  std::string_view text() const { return {reinterpret_cast<const char*>(span.data()), span.size()}; }
  /// Precondition: offset + size <= this->size().
  Bytes slice(size_t offset, size_t size) const { return {span.subspan(offset, size), owner}; }

  static Bytes copy_of(std::span<const std::byte> data);
  static Bytes from(std::string text);
};

/// Maps a regular file read-only. A file that is mapped already is not mapped again, unless it has changed since, or is
/// small and changed in the moment before it was mapped. Errors: not_found, io (not a regular file, permission).
Result<Bytes> map_file(const std::string& path);

/// Reads all pages of [data, data + size) that lie in a mapped file at once. Ignores other memory.
void read_ahead(const void* data, size_t size);

/// The position of data in a mapped file.
struct FilePlace {
  std::string path;
  std::string content;  ///< identifies the content: the file's number, size and times
  size_t offset;
};
/// nullopt: the data is not in a mapped file.
std::optional<FilePlace> place_in_file(const void* data, size_t size);
/// `FilePlace::content` of an open file; empty when its state cannot be read.
std::string content_of_file(int descriptor);
/// Drops the pages of [data, data + size) that lie in a mapped file. The next access reads them again. Ignores other
/// memory.
void drop_pages(const void* data, size_t size);

}  // namespace moka
