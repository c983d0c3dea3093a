// SPDX-License-Identifier: Apache-2.0
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
  std::string layout;  ///< of the array: "chw", "hwc"; empty: derived from its shape
};

/// Turns an array feature into an image. The array has the shape [1, C, H, W], [C, H, W], [1, H, W, C] or [H, W, C], or
/// [H, W] for one channel. Flexible sizes stay flexible. A network's output without a described shape gets the shape
/// that it has for inputs of the default sizes. Programs get operations that apply scale and bias. Networks store them
/// as preprocessing of inputs, or in a layer `scale` for outputs. In a pipeline, every stage is changed that the
/// feature enters or leaves. Errors: not_found, invalid_argument (a shape, a type or settings that do not fit),
/// unsupported (classic models).
Status set_image(const format::ModelSource& source, std::string_view feature, const ImageSettings& settings, Side side);

}  // namespace moka::editing
