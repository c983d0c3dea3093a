// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "moka/feature.h"

namespace moka::cli {

/// The pixels of a gray image of floats or half floats, height x width, which share its memory.
MultiArray numbers_of(const Image& image);

/// The shortest number that this type can represent, so that 0.1 in float32 stays 0.1.
double shortest(double value, DataType type);

}  // namespace moka::cli
