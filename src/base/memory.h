// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

namespace moka {

/// Allocates large, long-lived memory with undefined content, 64-byte aligned, on huge pages when the system grants
/// them. Null when memory is exhausted.
std::shared_ptr<std::byte> allocate_large(size_t bytes);
/// The same in whole pages of its own; `bytes` becomes what they have.
std::shared_ptr<std::byte> allocate_pages(size_t& bytes);
/// allocate_large with zeros. Memory of 2 MiB or more goes back to the system when it is freed. The heap would keep it,
/// and would keep all later blocks of this size too.
std::shared_ptr<std::byte> allocate_zeros(size_t bytes);

/// Returns freed heap memory to the system, if the C library can.
void trim_heap();

/// Bytes of the heap that are in use; 0 if the C library does not say.
size_t heap_in_use();

/// Cuts pieces out of large allocations, so that many small pieces share huge pages. Allocations are larger than what
/// is needed, because memory that no piece uses is only an address. The pages of a large piece are freed with it, an
/// allocation when all its pieces are. Thread-safe.
class PiecePool {
 public:
  /// A 64-byte aligned piece, followed by 64 readable bytes. Null when memory is exhausted.
  std::shared_ptr<std::byte> take(size_t bytes);

 private:
  std::mutex mutex_;
  std::shared_ptr<std::byte> current_;
  size_t used_ = 0, size_ = 0, total_ = 0;
};

}  // namespace moka
