#pragma once

#include <cstddef>
#include <cstdint>

namespace moka {

/// The nearest whole numbers from 0 to 255, the even one of two; 0 for NaN.
void float_to_byte(const float* in, uint8_t* out, size_t n);

}  // namespace moka
