// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/npy.h"
#include "io/picture.h"
#include "moka/feature.h"

namespace moka::cli {

/// Numbers only; throws IoError for text.
MultiArray to_multi_array(const io::Array& array);
/// Row-major.
io::Array to_array(const MultiArray& array);

/// 1 channel becomes gray8; 3 and 4 become rgb8, with alpha composed over black.
Image to_image(const io::Picture& picture);
/// 8 bits per channel; keeps alpha if a pixel is not opaque. Throws IoError for gray_float32.
io::Picture to_picture(const Image& image);
/// The pixels of a gray_float32 image, height x width.
io::Array to_float_array(const Image& image);

/// The shortest number that this type can represent, so that 0.1 in float32 stays 0.1.
double shortest(double value, DataType type);

}  // namespace moka::cli
