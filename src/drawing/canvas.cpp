// SPDX-License-Identifier: Apache-2.0
#include "drawing/canvas.h"

#include <agg2/agg_conv_stroke.h>
#include <agg2/agg_ellipse.h>
#include <agg2/agg_gsv_text.h>
#include <agg2/agg_path_storage.h>
#include <agg2/agg_pixfmt_rgba.h>
#include <agg2/agg_rasterizer_scanline_aa.h>
#include <agg2/agg_renderer_base.h>
#include <agg2/agg_renderer_scanline.h>
#include <agg2/agg_rendering_buffer.h>
#include <agg2/agg_scanline_u.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "files/pixels.h"

namespace moka::drawing {
namespace {

/// The height of a capital letter relative to the height of a line.
constexpr double kCapital = 0.62;

/// The text in the characters of the stroke font. Each character beyond ASCII becomes '?'.
std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F)
      out += c;
    else if ((byte & 0xC0) != 0x80)
      out += '?';
  }
  return out;
}

agg::rgba8 to_agg(Color c) { return {c.r, c.g, c.b, c.a}; }

}  // namespace

struct Canvas::Agg {
  explicit Agg(Image& image)
      : buffer(image.pixels.get(), static_cast<unsigned>(image.width), static_cast<unsigned>(image.height),
               static_cast<int>(image.row_bytes)),
        pixels(buffer),
        base(pixels) {
    rasterizer.clip_box(0, 0, static_cast<double>(image.width), static_cast<double>(image.height));
  }

  template <class Path>
  void fill(Path& path, Color color) {
    rasterizer.reset();
    rasterizer.add_path(path);
    agg::render_scanlines_aa_solid(rasterizer, scanline, base, to_agg(color));
  }

  agg::rendering_buffer buffer;
  agg::pixfmt_rgba32_plain pixels;
  agg::renderer_base<agg::pixfmt_rgba32_plain> base;
  agg::rasterizer_scanline_aa<> rasterizer;
  agg::scanline_u8 scanline;
};

Color readable_on(Color c) {
  return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b > 140 ? Color{0, 0, 0} : Color{255, 255, 255};
}

Color distinct_color(size_t index) {
  static constexpr std::array<Color, 20> kColors{{{230, 25, 75},  {60, 180, 75},   {255, 225, 25}, {0, 130, 200},
                                                  {245, 130, 48}, {145, 30, 180},  {70, 240, 240}, {240, 50, 230},
                                                  {210, 245, 60}, {250, 190, 212}, {0, 128, 128},  {220, 190, 255},
                                                  {170, 110, 40}, {255, 250, 200}, {128, 0, 0},    {170, 255, 195},
                                                  {128, 128, 0},  {255, 215, 180}, {0, 0, 128},    {128, 128, 128}}};
  return kColors[index % kColors.size()];
}

Color heat_color(double fraction) {
  if (std::isnan(fraction)) return {128, 128, 128};
  static constexpr std::array<Color, 5> kStops{
      {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}};
  const double at = std::clamp(fraction, 0.0, 1.0) * (kStops.size() - 1);
  const auto low = std::min(static_cast<size_t>(at), kStops.size() - 2);
  const double part = at - static_cast<double>(low);
  const auto mix = [&](uint8_t a, uint8_t b) { return static_cast<uint8_t>(std::lround(a + (b - a) * part)); };
  const Color &a = kStops[low], &b = kStops[low + 1];
  return {mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b)};
}

Canvas::Canvas(int64_t width, int64_t height, Color background)
    : image_(width, height, PixelFormat::rgba8), agg_(std::make_unique<Agg>(image_)) {
  agg_->base.clear(to_agg(background));
}

Canvas::Canvas(const Image& image)
    : image_(converted(converted(image, PixelFormat::rgb8), PixelFormat::rgba8)), agg_(std::make_unique<Agg>(image_)) {}

Canvas::~Canvas() = default;
Canvas::Canvas(Canvas&&) noexcept = default;

void Canvas::rect(double x, double y, double width, double height, Color color) {
  agg::path_storage path;
  path.move_to(x, y);
  path.line_to(x + width, y);
  path.line_to(x + width, y + height);
  path.line_to(x, y + height);
  path.close_polygon();
  agg_->fill(path, color);
}

void Canvas::outline(double x, double y, double width, double height, double thickness, Color color) {
  const double t = std::min({thickness, width / 2, height / 2});
  if (!(t > 0)) return;
  rect(x, y, width, t, color);
  rect(x, y + height - t, width, t, color);
  rect(x, y + t, t, height - 2 * t, color);
  rect(x + width - t, y + t, t, height - 2 * t, color);
}

void Canvas::line(const std::vector<std::pair<double, double>>& points, double thickness, Color color) {
  if (points.size() < 2) return;
  agg::path_storage path;
  path.move_to(points[0].first, points[0].second);
  for (size_t i = 1; i < points.size(); ++i) path.line_to(points[i].first, points[i].second);
  agg::conv_stroke<agg::path_storage> stroke(path);
  stroke.width(thickness);
  stroke.line_join(agg::round_join);
  stroke.line_cap(agg::round_cap);
  agg_->fill(stroke, color);
}

void Canvas::disc(double x, double y, double radius, Color color) {
  agg::ellipse circle(x, y, radius, radius);
  agg_->fill(circle, color);
}

void Canvas::text(double x, double y, const std::string& text, Color color, double size) {
  agg::gsv_text letters;
  letters.flip(true);
  letters.size(size * kCapital);
  letters.start_point(x, y + size * kCapital);
  const std::string shown = printable(text);
  letters.text(shown.c_str());
  agg::conv_stroke<agg::gsv_text> stroke(letters);
  stroke.width(std::max(1.0, size / 10));
  stroke.line_cap(agg::round_cap);
  stroke.line_join(agg::round_join);
  agg_->fill(stroke, color);
}

double Canvas::text_width(const std::string& text, double size) const {
  agg::gsv_text letters;
  letters.size(size * kCapital);
  const std::string shown = printable(text);
  letters.text(shown.c_str());
  return letters.text_width();
}

double Canvas::text_height(double size) const { return size * kCapital; }

void Canvas::paste(int64_t x, int64_t y, const Image& image) {
  for (int64_t row = std::max<int64_t>(0, -y); row < std::min(image.height, height() - y); ++row)
    for (int64_t column = std::max<int64_t>(0, -x); column < std::min(image.width, width() - x); ++column) {
      const uint8_t* from = files::pixel_at(image, column, row);
      uint8_t* to = files::pixel_at(image_, x + column, y + row);
      for (int c = 0; c < 3; ++c)
        to[c] = static_cast<uint8_t>((from[c] * from[3] + to[c] * (255 - from[3]) + 127) / 255);
    }
}

}  // namespace moka::drawing
