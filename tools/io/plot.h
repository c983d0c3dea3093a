#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/picture.h"

namespace moka::io {

struct Rgb {
  uint8_t r = 0, g = 0, b = 0;
};

/// A picture to draw on with smooth edges. Coordinates are pixels from the top left corner and may be fractions;
/// whatever lies outside is cut off. `opacity` is 0 to 1.
class Canvas {
 public:
  Canvas(size_t width, size_t height, Rgb background);

  void rect(double x, double y, double width, double height, Rgb colour, double opacity = 1, double radius = 0);
  /// The outline lies inside the rectangle.
  void outline(double x, double y, double width, double height, double thickness, Rgb colour, double radius = 0);
  void line(double x0, double y0, double x1, double y1, double thickness, Rgb colour, double opacity = 1);

  /// Printable ASCII in letters of 5 x 7 dots, each dot `scale` pixels; (x, y) is the top left of the first letter.
  /// Other characters show as an empty box.
  void text(double x, double y, std::string_view text, Rgb colour, int scale = 2);
  static double text_width(std::string_view text, int scale = 2);
  static double text_height(int scale = 2) { return 7.0 * scale; }

  /// Three channels.
  const Picture& picture() const { return picture_; }

 private:
  template <typename Distance>
  void shade(double left, double top, double right, double bottom, Rgb colour, double opacity, Distance distance);

  Picture picture_;
};

}  // namespace moka::io
