#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

namespace moka {

/// Memory that is large and lives long, 64-byte aligned, on huge pages where the system grants them; null when there is
/// none left. Its content is undefined.
std::shared_ptr<std::byte> allocate_large(size_t bytes);

/// Gives freed memory that the heap keeps back to the system, where the system's library can.
void trim_heap();

/// Cuts pieces out of large allocations, so that many small ones share huge pages. Memory is returned when all pieces
/// of an allocation are gone. Thread-safe.
class PiecePool {
 public:
  /// 64-byte aligned, 64 readable bytes behind its end; null when there is no memory.
  std::shared_ptr<std::byte> take(size_t bytes);

 private:
  std::mutex mutex_;
  std::shared_ptr<std::byte> current_;
  size_t used_ = 0, size_ = 0, total_ = 0;
};

}  // namespace moka
