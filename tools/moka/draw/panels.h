// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "draw/canvas.h"
#include "draw/preview.h"

/// Parts of a drawing, put together.
namespace moka::cli {

inline constexpr Color kBackground{24, 26, 31}, kText{232, 234, 237}, kDimText{150, 155, 163};
inline constexpr double kLine = 20;  ///< height of a line of text

struct Panel {
  std::string title;
  io::Picture picture;
};

/// The panel's pixels, enlarged by a whole factor to about `width`.
Panel panel_of(const Map& map, size_t width, bool rows_are_time);
Panel panel_of(const Image& image, size_t width);
/// Bars of classes with their probabilities.
Panel panel_of(const std::vector<ClassScore>& classes, size_t width);

/// Panels in rows of at most `width`, each below its title.
io::Picture arranged(const std::vector<Panel>& panels, size_t width);

/// Shrunk to `width`, or enlarged by a whole factor to at most `width`. 4 channels.
io::Picture of_width(const io::Picture& picture, size_t width);

/// The pixels of a prediction's image, 4 channels.
io::Picture picture_of(const Image& image);

}  // namespace moka::cli
