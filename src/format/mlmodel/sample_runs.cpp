// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodel/sample_runs.h"

#include <cstring>
#include <utility>

#include "base/memory.h"

namespace moka::format {

Result<Bytes> SampleRuns::joined() const {
  size_t size = 0;
  for (const SampleRun& run : runs_) size += run.count * run.size;
  const std::lock_guard lock(mutex_);
  if (const auto made = joined_.lock()) return Bytes{{static_cast<const std::byte*>(made.get()), size}, made};
  const std::shared_ptr<std::byte> all = allocate_large(size);
  if (!all)
    return fail(ErrorCode::out_of_budget, "the samples of a nearest-neighbors classifier, ", size,
                " bytes, do not fit into the memory of this machine");
  std::byte* to = all.get();
  for (const SampleRun& run : runs_)
    for (size_t i = 0; i < run.count; ++i, to += run.size) std::memcpy(to, run.bytes.data() + i * run.step, run.size);
  joined_ = all;
  return Bytes{{all.get(), size}, all};
}

}  // namespace moka::format
