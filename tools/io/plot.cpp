#include "io/plot.h"

#include <algorithm>
#include <cmath>

#include "io/font.h"

namespace moka::io {
namespace {

/// Distance from a point to a rectangle with rounded corners, negative inside.
double distance_to_box(double px, double py, double x, double y, double width, double height, double radius) {
  radius = std::min({radius, width / 2, height / 2});
  const double dx = std::abs(px - x - width / 2) - width / 2 + radius;
  const double dy = std::abs(py - y - height / 2) - height / 2 + radius;
  return std::hypot(std::max(dx, 0.0), std::max(dy, 0.0)) + std::min(std::max(dx, dy), 0.0) - radius;
}

}  // namespace

Canvas::Canvas(size_t width, size_t height, Rgb background) : picture_(Picture::blank(width, height, 3)) {
  rect(0, 0, static_cast<double>(width), static_cast<double>(height), background);
}

template <typename Distance>
void Canvas::shade(double left, double top, double right, double bottom, Rgb colour, double opacity,
                   Distance distance) {
  const auto within = [](double v, size_t size) {
    return static_cast<size_t>(std::clamp(v, 0.0, static_cast<double>(size)));
  };
  const size_t x0 = within(std::floor(left) - 1, picture_.width), x1 = within(std::ceil(right) + 1, picture_.width);
  const size_t y0 = within(std::floor(top) - 1, picture_.height), y1 = within(std::ceil(bottom) + 1, picture_.height);
  const double target[3] = {static_cast<double>(colour.r), static_cast<double>(colour.g),
                            static_cast<double>(colour.b)};
  for (size_t y = y0; y < y1; ++y) {
    for (size_t x = x0; x < x1; ++x) {
      const double covered =
          std::clamp(0.5 - distance(static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5), 0.0, 1.0) * opacity;
      if (covered <= 0) continue;
      uint8_t* pixel = picture_.at(x, y);
      for (int c = 0; c < 3; ++c) {
        pixel[c] = static_cast<uint8_t>(std::lround(pixel[c] + (target[c] - pixel[c]) * covered));
      }
    }
  }
}

void Canvas::rect(double x, double y, double width, double height, Rgb colour, double opacity, double radius) {
  shade(x, y, x + width, y + height, colour, opacity,
        [&](double px, double py) { return distance_to_box(px, py, x, y, width, height, radius); });
}

void Canvas::outline(double x, double y, double width, double height, double thickness, Rgb colour, double radius) {
  shade(x, y, x + width, y + height, colour, 1, [&](double px, double py) {
    const double d = distance_to_box(px, py, x, y, width, height, radius);
    return std::max(d, -d - thickness);
  });
}

void Canvas::line(double x0, double y0, double x1, double y1, double thickness, Rgb colour, double opacity) {
  const double half = thickness / 2, dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy;
  shade(std::min(x0, x1) - half, std::min(y0, y1) - half, std::max(x0, x1) + half, std::max(y0, y1) + half, colour,
        opacity, [&](double px, double py) {
          const double t = square > 0 ? std::clamp(((px - x0) * dx + (py - y0) * dy) / square, 0.0, 1.0) : 0.0;
          return std::hypot(px - x0 - t * dx, py - y0 - t * dy) - half;
        });
}

void Canvas::text(double x, double y, std::string_view text, Rgb colour, int scale) {
  x = std::round(x);
  y = std::round(y);
  for (char c : text) {
    size_t column = 0, row = 0;
    for (char dot : glyph(c)) {
      if (dot == ' ') {
        column = 0;
        ++row;
        continue;
      }
      if (dot == '#') {
        rect(x + static_cast<double>(column) * scale, y + static_cast<double>(row) * scale, scale, scale, colour);
      }
      ++column;
    }
    x += 6.0 * scale;
  }
}

double Canvas::text_width(std::string_view text, int scale) {
  return text.empty() ? 0 : (6.0 * static_cast<double>(text.size()) - 1) * scale;
}

}  // namespace moka::io
