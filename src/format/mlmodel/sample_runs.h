// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace moka::format {

/// Samples of a nearest-neighbors classifier. Their float32 numbers are little-endian and may be unaligned.
struct SampleRun {
  Bytes bytes;  ///< begins with the numbers of the first sample
  size_t count = 0;
  size_t size = 0;  ///< bytes of a sample
  size_t step = 0;  ///< bytes from one sample to the next
};

/// All samples of a classifier, as many bytes each. Immutable, safe to share between threads.
class SampleRuns {
 public:
  explicit SampleRuns(std::vector<SampleRun> runs) : runs_(std::move(runs)) {}

  std::span<const SampleRun> runs() const { return runs_; }
  /// The numbers of all samples, dense and aligned. They are copied once for all that hold them at the same time. Error
  /// out_of_budget: they do not fit into memory.
  Result<Bytes> joined() const;

 private:
  std::vector<SampleRun> runs_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const void> joined_;
};

}  // namespace moka::format
