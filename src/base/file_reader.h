// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace moka {

/// Copies parts of mapped files into reused buffers. This is faster than page faults, and the pages do not count as
/// memory of the process. Thread-safe.
class FileReader {
 public:
  /// A copy of [data, data + size) in a buffer, which the last owner returns to this reader. Null when the data is not
  /// in a mapped file, the file at its path has changed, the size is too small or too large for a buffer, or memory is
  /// short.
  std::shared_ptr<const std::byte> read(const void* data, size_t size);
  /// Copies the data to `to` instead. Returns false where `read` returns null.
  bool copy(const void* data, size_t size, void* to);

 private:
  struct Buffer {
    std::shared_ptr<std::byte> memory;
    size_t size = 0;
  };
  Buffer take(size_t size);
  bool copy(const FilePlace& place, size_t size, std::byte* to);
  std::shared_ptr<const int> descriptor(const std::string& path, const std::string& content);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const int>> descriptors_;  ///< by content
  std::vector<Buffer> free_;
};

}  // namespace moka
