#pragma once

#include "compress/encoding.h"

namespace moka::compress {

struct Scale {
  float scale = 1;
  int zero = 0;
};

/// The scale and zero point with which the integers of `linear` cover a range, rounded to a half if `half`.
Scale scale_of(float least, float most, const Linear& linear, bool half);

}  // namespace moka::compress
