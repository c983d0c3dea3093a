// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>

#include "kernel/memory.h"

namespace moka::devices::gpu {

/// A stretch of a buffer that a dispatch uses.
struct Use {
  const kernel::Buffer* buffer = nullptr;
  size_t offset = 0, bytes = 0;
  size_t element = 4;  ///< bytes
  bool written = false;
  bool keeps_rest = false;  ///< only some elements are written, and the others keep what is there
  bool is_unused = false;   ///< touches nothing
  uint32_t parts = 0;  ///< not 0: of other elements than all other uses with this number (CommandRecorder::new_parts)

  static Use read(const kernel::BufferView& v) { return of(v, false); }
  static Use write(const kernel::BufferView& v) { return of(v, true); }
  static Use update(const kernel::BufferView& v) {
    Use u = of(v, true);
    u.keeps_rest = true;
    return u;
  }
  static Use read(const std::shared_ptr<const kernel::Buffer>& b, size_t element) {
    return {b.get(), 0, b->bytes(), element};
  }
  static Use of(const kernel::BufferView& v, bool written);
  Use to_read() const { return {buffer, offset, bytes, element}; }
  /// For a binding that the shader has and does not read: as few bytes as can be bound.
  Use unused() const {
    Use u{buffer, offset, std::min(bytes, element), element};
    u.is_unused = true;
    return u;
  }
  /// What begins with element `first`.
  Use from(int64_t first) const {
    const size_t skipped = static_cast<size_t>(first) * element;
    return {buffer, offset + skipped, bytes - skipped, element, written};
  }
  /// The same, `count` elements of it.
  Use part(int64_t first, int64_t count) const {
    return {buffer, offset + static_cast<size_t>(first) * element, static_cast<size_t>(count) * element, element,
            written};
  }
  /// Whether it is the same bytes.
  bool is(const Use& other) const {
    return !is_unused && !other.is_unused && buffer == other.buffer && offset == other.offset && bytes == other.bytes;
  }
  bool overlaps(const Use& other) const {
    return !is_unused && !other.is_unused && buffer == other.buffer && offset < other.offset + other.bytes &&
           other.offset < offset + bytes;
  }
  bool covers(const Use& other) const {
    return buffer == other.buffer && offset <= other.offset && other.offset + other.bytes <= offset + bytes;
  }
};

}  // namespace moka::devices::gpu
