// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "drawing/canvas.h"
#include "drawing/preview.h"

/// Parts of a drawing, put together.
namespace moka::drawing {

inline constexpr Color kBackground{24, 26, 31}, kText{232, 234, 237}, kDimText{150, 155, 163};
inline constexpr double kLine = 20;  ///< height of a line of text

struct Panel {
  std::string title;
  Image image;
};

/// The panel's pixels, enlarged by a whole factor to about `width`.
Panel panel_of(const Map& map, int64_t width, bool rows_are_time);
Panel panel_of(const Image& image, int64_t width);
/// Bars of classes with their probabilities.
Panel panel_of(const std::vector<ClassScore>& classes, int64_t width);

/// Panels in rows of at most `width`, each below its title.
Image arranged(const std::vector<Panel>& panels, int64_t width);

/// Shrunk to `width`, or enlarged by a whole factor to at most `width`. `image` is rgba8.
Image of_width(const Image& image, int64_t width);

/// An opaque black rgba8 image.
Image blank(int64_t width, int64_t height);

/// "93.2%".
std::string percent_text(double fraction);

}  // namespace moka::drawing
