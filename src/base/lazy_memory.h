#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"

namespace moka {

/// Content that is computed in blocks, in any order and by any thread. All blocks but the last are full.
class BlockSource {
 public:
  static constexpr size_t block_size = 64 << 10;

  virtual ~BlockSource() = default;
  virtual size_t size() const = 0;
  /// Writes block `index` to `to`, which has its size. False: the content cannot be computed any more.
  virtual bool fill(size_t index, std::span<std::byte> to) const = 0;
};

/// Memory with the content of `source`, which is not in dumps of the process. With userfaultfd, each block is computed
/// when it is first read, `read_ahead` computes a range on the calling thread, and `drop_pages` frees what the next
/// read computes again. A forked process has no such memory. If a block fails later, the process aborts, because a read
/// cannot fail. Without userfaultfd, all blocks are computed at once. What was computed is overwritten when the last
/// owner of the bytes releases them. `at_once`: computes all blocks in any case. Errors: out_of_budget (no memory), io
/// (a block failed).
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
