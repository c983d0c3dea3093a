// SPDX-License-Identifier: Apache-2.0
#include "demo/canvas.h"

#include <cairo/cairo.h>

#include <algorithm>
#include <numbers>
#include <stdexcept>

namespace demo {
namespace {

void set_color(cairo_t* cairo, Rgb c, double opacity) {
  cairo_set_source_rgba(cairo, c.r / 255.0, c.g / 255.0, c.b / 255.0, opacity);
}

void add_rect(cairo_t* cairo, double x, double y, double width, double height, double radius) {
  constexpr double kQuarter = std::numbers::pi / 2;
  radius = std::min({radius, width / 2, height / 2});
  if (radius <= 0) return cairo_rectangle(cairo, x, y, width, height);
  cairo_new_sub_path(cairo);
  cairo_arc(cairo, x + width - radius, y + radius, radius, -kQuarter, 0);
  cairo_arc(cairo, x + width - radius, y + height - radius, radius, 0, kQuarter);
  cairo_arc(cairo, x + radius, y + height - radius, radius, kQuarter, 2 * kQuarter);
  cairo_arc(cairo, x + radius, y + radius, radius, 2 * kQuarter, 3 * kQuarter);
  cairo_close_path(cairo);
}

cairo_text_extents_t extents_of(cairo_t* cairo, const std::string& text, double size) {
  cairo_text_extents_t extents;
  cairo_set_font_size(cairo, size);
  cairo_text_extents(cairo, text.c_str(), &extents);
  return extents;
}

}  // namespace

Canvas::Canvas(size_t width, size_t height, Rgb background)
    : surface_(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width), static_cast<int>(height)),
               cairo_surface_destroy),
      cairo_(cairo_create(surface_.get()), cairo_destroy) {
  if (cairo_status(cairo_.get()) != CAIRO_STATUS_SUCCESS)
    throw std::runtime_error(cairo_status_to_string(cairo_status(cairo_.get())));
  cairo_select_font_face(cairo_.get(), "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  set_color(cairo_.get(), background, 1);
  cairo_paint(cairo_.get());
}

void Canvas::rect(double x, double y, double width, double height, Rgb color, double opacity, double radius) {
  set_color(cairo_.get(), color, opacity);
  add_rect(cairo_.get(), x, y, width, height, radius);
  cairo_fill(cairo_.get());
}

void Canvas::outline(double x, double y, double width, double height, double thickness, Rgb color, double radius) {
  set_color(cairo_.get(), color, 1);
  const double half = thickness / 2;
  add_rect(cairo_.get(), x + half, y + half, width - thickness, height - thickness, radius - half);
  cairo_set_line_width(cairo_.get(), thickness);
  cairo_stroke(cairo_.get());
}

void Canvas::text(double x, double y, const std::string& text, Rgb color, double size) {
  set_color(cairo_.get(), color, 1);
  cairo_move_to(cairo_.get(), x, y + text_height(size));
  cairo_set_font_size(cairo_.get(), size);
  cairo_show_text(cairo_.get(), text.c_str());
  cairo_new_path(cairo_.get());
}

double Canvas::text_width(const std::string& text, double size) const {
  return extents_of(cairo_.get(), text, size).x_advance;
}

double Canvas::text_height(double size) const { return extents_of(cairo_.get(), "H", size).height; }

moka::Image Canvas::picture() const {
  cairo_surface_flush(surface_.get());
  moka::Image picture(cairo_image_surface_get_width(surface_.get()), cairo_image_surface_get_height(surface_.get()),
                      moka::PixelFormat::rgb8);
  const auto stride = static_cast<int64_t>(cairo_image_surface_get_stride(surface_.get()));
  const unsigned char* data = cairo_image_surface_get_data(surface_.get());
  for (int64_t y = 0; y < picture.height; y++) {
    const auto* row = reinterpret_cast<const uint32_t*>(data + y * stride);
    uint8_t* to = picture.pixels.get() + y * picture.row_bytes;
    for (int64_t x = 0; x < picture.width; x++)
      for (int c = 0; c < 3; c++) *to++ = static_cast<uint8_t>(row[x] >> (16 - 8 * c));
  }
  return picture;
}

}  // namespace demo
