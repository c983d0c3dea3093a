// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "drawing/preview.h"

namespace moka::drawing {

/// The rectangle of a picture, in its pixels, that the model's image shows. It may be larger than the picture.
struct View {
  double x = 0, y = 0, width = 0, height = 0;
};
/// Where a model's image of width x height lies in the picture that it was made from.
View view_of(const Image& picture, int64_t width, int64_t height, ImageFit fit, const ImageRegion& region = {});

/// The picture with masks, boxes and key points, and beside it maps, output images and bars of classes.
Image draw_on_picture(const Preview& preview, const Image& picture, const View& view);

/// The spectrogram of `samples`, and below it the maps with their rows as time from left to right, and the classes.
Image draw_on_sound(const Preview& preview, std::span<const float> samples);

/// Maps, output images and classes alone.
Image draw_alone(const Preview& preview);

/// "3 boxes, 5 classes".
std::string summary_of(const Preview& preview);

}  // namespace moka::drawing
