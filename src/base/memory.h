#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

namespace moka {

/// Allocates large, long-lived memory with undefined content, 64-byte aligned, on huge pages where the system grants
/// them. Null when there is none left.
std::shared_ptr<std::byte> allocate_large(size_t bytes);

/// Returns freed memory that the heap keeps to the system, where the C library can.
void trim_heap();

/// Cuts pieces out of large allocations, so that many small ones share huge pages. Memory is returned when all pieces
/// of an allocation are gone. Thread-safe.
class PiecePool {
 public:
  /// A piece, 64-byte aligned, with 64 readable bytes behind its end. Null when there is no memory.
  std::shared_ptr<std::byte> take(size_t bytes);

 private:
  std::mutex mutex_;
  std::shared_ptr<std::byte> current_;
  size_t used_ = 0, size_ = 0, total_ = 0;
};

}  // namespace moka
