#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace moka {

/// Copies parts of mapped files into buffers of its own. That is faster than to have their pages mapped, and they are
/// not counted as memory of the process. Thread-safe.
class FileReader {
 public:
  /// [data, data + size) until the result is given back. Null where it is not read: it lies in no mapped file, the file
  /// at its path is no longer the same, it is small or larger than a buffer may be, or there is no memory.
  std::shared_ptr<const std::byte> read(const void* data, size_t size);
  /// Copies the same; false where it is not read.
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
