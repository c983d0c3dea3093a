// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "moka/files.h"
#include "pictures/placement.h"

namespace moka::files {

using pictures::Placement;

/// As pictures::place, but throws.
Placement place(int64_t source_width, int64_t source_height, int64_t width, int64_t height, ImageFit fit,
                const ImageRegion& region = {});

}  // namespace moka::files
