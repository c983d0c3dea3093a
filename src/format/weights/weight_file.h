// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "format/message/rope.h"
#include "format/weights/blob.h"

namespace moka::format {

/// Builds a weight file (blob storage version 2). Refers to the added data until the content is written.
class WeightFile {
 public:
  /// Returns the offset by which a program refers to the blob. `data`: packed elements, `count` of them. Data at the
  /// same address is stored once.
  uint64_t add(BlobType type, Bytes data, uint64_t count);
  bool empty() const { return entries_.empty(); }
  Rope content() const;

 private:
  struct Entry {
    BlobType type;
    Bytes data;
    uint64_t count;
    uint64_t offset;
  };
  std::vector<Entry> entries_;
  uint64_t end_ = record_size;
  static constexpr uint64_t record_size = 64;
};

}  // namespace moka::format
