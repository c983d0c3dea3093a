#pragma once

#include <string>
#include <vector>

#include "editing/features.h"
#include "format/source.h"

namespace moka::editing {

/// How the pixels of an image, 0 to 255, become the numbers of an array and back: number = pixel * scale + bias for
/// inputs, pixel = number * scale + bias for outputs. One number, or one per channel in the order of the color space.
struct ImageSettings {
  std::string color = "RGB";  ///< ColorSpace: RGB, BGR, GRAYSCALE, GRAYSCALE_FLOAT16
  std::vector<double> scale = {1}, bias = {0};
  std::string layout;  ///< of the array: "chw", "hwc"; empty: what its shape says
};

/// Makes an image of an array. The array has the shape [1, C, H, W], [C, H, W], [1, H, W, C] or [H, W, C], or [H, W]
/// for one channel. Flexible sizes stay flexible. An output of a network without a described shape gets the one for
/// inputs of the default sizes. Programs compute scale and bias before what was there; networks keep them as
/// preprocessing of inputs, and in a layer `scale` for outputs. In a pipeline, the stages that the feature passes are
/// changed. Errors: not_found, invalid_argument (a shape, a type or settings that do not fit), unsupported (classic
/// models).
Status set_image(const format::ModelSource& source, std::string_view feature, const ImageSettings& settings, Side side);

}  // namespace moka::editing
