// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "moka/multi_array.h"

namespace moka {

/// Memory that processes and devices share, as IOSurface does on Apple's systems (docs/sharing-memory.md). An array in
/// it is an input or an output backing that no one copies: the CPU uses it where it lies, and so does a GPU that
/// computes in the host's memory and whose driver takes memory of the host. Other GPUs get a copy, as of any array.
///
///     moka::SharedBuffer pixels(4 * 224 * 224 * 3);          // one process
///     send(socket, pixels.file_descriptor());                // SCM_RIGHTS
///
///     moka::SharedBuffer pixels = moka::SharedBuffer::open(descriptor);  // another one
///     model.predict({{"image", pixels.array(moka::DataType::float32, {1, 3, 224, 224})}});
///
/// Copies share the memory. It lives as long as one of them, or an array in it. Both processes agree on their own about
/// who writes when. A prediction reads its inputs, and writes its output backings, until it returns.
class MOKA_EXPORT SharedBuffer {
 public:
  /// New memory of zeros, in a file of memfd_create that cannot shrink. Throws invalid_argument (0 bytes),
  /// out_of_budget, io.
  explicit SharedBuffer(size_t bytes);
  /// Memory behind a descriptor of memfd_create, which another process may have sent: `bytes` bytes from `offset` on;
  /// 0: to its end. The descriptor remains the caller's. The file is sealed against shrinking, so that no access can
  /// fail. Throws invalid_argument (a descriptor of something else, as of a dma_buf, or one that cannot be sealed; a
  /// range outside), out_of_budget, io.
  static SharedBuffer open(int descriptor, uint64_t offset = 0, size_t bytes = 0);
  /// Memory of the caller, which outlives the buffer and the arrays in it. A GPU takes whole pages: it copies unless
  /// `data` and `bytes` are multiples of a page. Throws invalid_argument (no memory, or memory that is shared already).
  static SharedBuffer over(void* data, size_t bytes);

  std::byte* data() const;
  size_t bytes() const;
  /// The descriptor for other processes, which the buffer closes at its end; -1 for memory of the caller.
  int file_descriptor() const;
  uint64_t offset() const;  ///< where the memory begins in its file
  /// An array at `offset` bytes, row-major, which keeps the memory. Multiples of 256 bytes suit all devices. Throws
  /// invalid_argument (a shape that does not fit, an offset that is not aligned to the elements).
  MultiArray array(DataType type, std::vector<int64_t> shape, size_t offset = 0) const;

 private:
  struct Impl;
  explicit SharedBuffer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace moka
