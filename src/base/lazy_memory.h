// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"

namespace moka {

/// Content that can be computed in blocks, in any order and on any thread. All blocks but the last are full.
class BlockSource {
 public:
  static constexpr size_t block_size = 64 << 10;

  virtual ~BlockSource() = default;
  virtual size_t size() const = 0;
  /// Writes block `index` to `to`, which has its size. False: the content cannot be computed any more.
  virtual bool fill(size_t index, std::span<std::byte> to) const = 0;
};

/// Memory with the content of `source`, such as a model that is decrypted block by block. Core dumps do not contain it.
///
/// With userfaultfd, a block is computed when it is first read. `read_ahead` computes a range on the calling thread.
/// `drop_pages` frees pages; the next read computes them again. A read cannot fail, so the process aborts if a block
/// cannot be computed. A forked process does not have the memory.
///
/// Without userfaultfd, or with `at_once`, all blocks are computed before the function returns. The content is
/// overwritten when the last owner of the bytes releases them. Errors: out_of_budget (no memory), io (a block failed).
Result<Bytes> map_blocks(std::shared_ptr<const BlockSource> source, bool at_once = false);

/// Whether map_blocks computes blocks when they are read on this system.
bool maps_lazily();

/// Bytes of this memory that hold computed blocks now. For tests. Zero for other memory.
size_t computed_bytes(const void* data);

namespace lazy {
/// `read_ahead` and `drop_pages` for this memory. False: it is other memory.
bool read_ahead(const void* data, size_t size);
bool drop(const void* data, size_t size);
}  // namespace lazy

}  // namespace moka
