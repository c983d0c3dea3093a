// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "devices/gpu/recorder.h"

namespace moka::devices::gpu {

/// What a submission does each time it runs.
struct Counters {
  size_t dispatches = 0, barriers = 0, copies = 0;
  size_t uploaded = 0, downloaded = 0;  ///< copied bytes; 0 if host and device share memory
};

/// A region as commands, and where the host writes and reads its values.
struct RecordedRegion {
  std::vector<Command> commands;
  std::shared_ptr<kernel::Buffer> staging;  ///< nullptr: the host sees all uploads and downloads
  std::vector<std::byte*> uploads, downloads;
  Counters counters;
};

/// Records the steps, and copies between staging memory and values that the host does not see. Errors: those of
/// kernels, and of allocating.
Result<RecordedRegion> record_region(const GpuDevice& device, const kernel::Region& region);

}  // namespace moka::devices::gpu
