// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compress/encoding.h"

namespace moka::compress {

struct Scale {
  float scale = 1;
  int zero = 0;
};

/// The scale and zero point for which the integers of `linear` cover a range. half: the scale is rounded to float16.
Scale scale_of(float least, float most, const Linear& linear, bool half);

}  // namespace moka::compress
