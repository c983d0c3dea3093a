// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.h"

namespace moka {

/// Memory that devices use where it lies, and that other processes may have, too. Code that only has an address finds
/// it by that. Thread-safe, but for its content.
class SharedMemory {
 public:
  /// New memory of zeros. Its file cannot shrink. Errors: out_of_budget, io.
  static Result<std::shared_ptr<SharedMemory>> make(size_t bytes);
  /// Memory of a file of memfd_create, which another process may have made: `bytes` bytes from `offset` on, or all to
  /// its end. Keeps its file from shrinking. `file` stays open and belongs to the caller. Errors: invalid_argument, io.
  static Result<std::shared_ptr<SharedMemory>> open(int file, uint64_t offset, size_t bytes);
  /// Memory of the caller, which outlives the object. Errors: invalid_argument, if it overlaps other shared memory.
  static Result<std::shared_ptr<SharedMemory>> borrow(void* at, size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int file() const { return file_; }           ///< -1: none
  uint64_t offset() const { return offset_; }  ///< of the memory in its file
  /// The pages of the memory, which live as long as the pointer; nullptr: they have other things, too.
  std::shared_ptr<std::byte> pages() const { return pages_; }
  size_t page_bytes() const { return page_bytes_; }

  /// The memory that contains all of these bytes; nullptr: none.
  static std::shared_ptr<SharedMemory> find(const void* at, size_t bytes);
  /// Whether there is any, without a lock.
  static bool is_any();

 private:
  SharedMemory() = default;
  static Result<std::shared_ptr<SharedMemory>> map(int file, uint64_t offset, size_t bytes);
  Status list();

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  int file_ = -1;
  uint64_t offset_ = 0;
  std::shared_ptr<std::byte> pages_;
  size_t page_bytes_ = 0;
  std::weak_ptr<SharedMemory> self_;
  bool is_listed_ = false;
};

}  // namespace moka
