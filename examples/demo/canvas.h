// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "moka/feature.h"

struct _cairo;
struct _cairo_surface;

namespace demo {

struct Rgb {
  uint8_t r = 0, g = 0, b = 0;
};

/// A picture to draw on with smooth edges, using cairo. Coordinates are pixels from the top left corner and may be
/// fractions; shapes are cut off at the border. `opacity` is 0 to 1. The `size` of text is the height of a line.
class Canvas {
 public:
  static constexpr double kText = 16;

  /// Throws std::runtime_error when memory is exhausted.
  Canvas(size_t width, size_t height, Rgb background);

  void rect(double x, double y, double width, double height, Rgb color, double opacity = 1, double radius = 0);
  /// The outline is inside the rectangle.
  void outline(double x, double y, double width, double height, double thickness, Rgb color, double radius = 0);
  /// (x, y) is the top left corner of the letters.
  void text(double x, double y, const std::string& text, Rgb color, double size = kText);
  double text_width(const std::string& text, double size = kText) const;
  /// The height of a capital letter.
  double text_height(double size = kText) const;

  /// rgb8.
  moka::Image picture() const;

 private:
  std::shared_ptr<_cairo_surface> surface_;
  std::shared_ptr<_cairo> cairo_;
};

}  // namespace demo
