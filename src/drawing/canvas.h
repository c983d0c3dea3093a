// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "moka/drawing.h"

namespace moka::drawing {

/// The color with this opacity.
inline Color faded(Color c, double opacity) { return {c.r, c.g, c.b, static_cast<uint8_t>(opacity * 255 + 0.5)}; }

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
  Canvas(int64_t width, int64_t height, Color background);
  /// Alpha is composed over black.
  explicit Canvas(const Image& image);
  ~Canvas();
  Canvas(Canvas&&) noexcept;

  int64_t width() const { return image_.width; }
  int64_t height() const { return image_.height; }

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
  /// Blends an rgba8 image; (x, y) is its top left corner.
  void paste(int64_t x, int64_t y, const Image& image);

  /// Opaque rgba8.
  const Image& image() const { return image_; }

 private:
  struct Agg;
  Image image_;
  std::unique_ptr<Agg> agg_;
};

}  // namespace moka::drawing
