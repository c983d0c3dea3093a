// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/picture.h"

namespace moka::cli {

struct Color {
  uint8_t r = 0, g = 0, b = 0, a = 255;
  Color faded(double opacity) const { return {r, g, b, static_cast<uint8_t>(opacity * 255 + 0.5)}; }
};

/// Black or white, whichever has the better contrast to `background`.
Color readable_on(Color background);
/// One of 20 colors that differ clearly.
Color distinct_color(size_t index);
/// From dark violet (0) over green to yellow (1). Clamps other values; NaN is gray.
Color heat_color(double fraction);

/// An opaque picture to draw on with smooth edges, by Anti-Grain Geometry. Coordinates are pixels from the top left
/// corner and may be fractions; shapes are cut off at the border. The `size` of text is the height of a line. Letters
/// are strokes of a built-in font, so that no font has to be installed; characters beyond ASCII print as '?'.
class Canvas {
 public:
  Canvas(size_t width, size_t height, Color background);
  /// Alpha is composed over black.
  explicit Canvas(const io::Picture& picture);
  ~Canvas();
  Canvas(Canvas&&) noexcept;

  size_t width() const { return picture_.width; }
  size_t height() const { return picture_.height; }

  void rect(double x, double y, double width, double height, Color color);
  /// The outline is inside the rectangle.
  void outline(double x, double y, double width, double height, double thickness, Color color);
  void line(const std::vector<std::pair<double, double>>& points, double thickness, Color color);
  void disc(double x, double y, double radius, Color color);
  /// (x, y) is the top left corner of the letters.
  void text(double x, double y, const std::string& text, Color color, double size);
  double text_width(const std::string& text, double size) const;
  /// The height of a capital letter.
  double text_height(double size) const;
  /// Blends a picture of 4 channels; (x, y) is its top left corner.
  void paste(int64_t x, int64_t y, const io::Picture& picture);

  /// Four channels.
  const io::Picture& picture() const { return picture_; }

 private:
  struct Agg;
  io::Picture picture_;
  std::unique_ptr<Agg> agg_;
};

}  // namespace moka::cli
