// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "draw/preview.h"
#include "io/picture.h"

/// Answers as pictures: what a prediction means, drawn into the picture, over the spectrogram of the sound, or as plots
/// of a table's rows.
namespace moka::cli {

/// The rectangle of a picture, in its pixels, that the model's image shows. It may be larger than the picture.
struct View {
  double x = 0, y = 0, width = 0, height = 0;
};

/// The picture with masks, boxes and key points, and beside it maps, output images and bars of classes. Small pictures
/// are enlarged, so that labels can be read.
io::Picture draw_on_picture(const Preview& preview, const io::Picture& picture, const View& view);

/// The spectrogram of `samples`, and below it the maps with their rows as time from left to right, and the classes.
io::Picture draw_on_sound(const Preview& preview, std::span<const float> samples);

/// Maps, output images and classes alone.
io::Picture draw_alone(const Preview& preview);

/// One line for each numeric output, and for each of up to eight classes, over the rows of a batch.
io::Picture draw_table(const std::vector<Features>& rows, const FunctionDescription& function);

/// "3 boxes, 5 classes"; empty for nothing.
std::string summary_of(const Preview& preview);

}  // namespace moka::cli
