// SPDX-License-Identifier: Apache-2.0
#include "drawing/panels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "checking/text.h"
#include "files/pixels.h"

namespace moka::drawing {
namespace {

using files::pixel_at;

constexpr int64_t kGap = 12;
/// The greatest height of an enlarged picture: a map of thousands of rows and a few columns stays small.
constexpr int64_t kMostHeight = 1600;

/// Every pixel becomes a square of so many.
Image enlarged(const Image& image, int64_t factor) {
  if (factor <= 1) return image;
  Image out = blank(image.width * factor, image.height * factor);
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x)
      std::memcpy(pixel_at(out, x, y), pixel_at(image, x / factor, y / factor), 4);
  return out;
}

}  // namespace

Image blank(int64_t width, int64_t height) {
  Image out(width, height, PixelFormat::rgba8);
  for (int64_t i = 3; i < out.row_bytes * height; i += 4) out.pixels.get()[i] = 255;
  return out;
}

std::string percent_text(double fraction) {
  char text[400];
  std::snprintf(text, sizeof text, "%.1f%%", fraction * 100);
  return text;
}

Image of_width(const Image& image, int64_t width) {
  if (image.width > width) return fit_image(image, width, std::max<int64_t>(1, image.height * width / image.width));
  return enlarged(image, std::max<int64_t>(1, std::min(width / image.width, kMostHeight / image.height)));
}

Panel panel_of(const Map& map, int64_t width, bool rows_are_time) {
  Image out = rows_are_time ? blank(map.height, map.width) : blank(map.width, map.height);
  const double range = map.most > map.least ? map.most - map.least : 1;
  for (int64_t y = 0; y < map.height; ++y)
    for (int64_t x = 0; x < map.width; ++x) {
      const Color c =
          heat_color((static_cast<double>(map.values[static_cast<size_t>(y * map.width + x)]) - map.least) / range);
      uint8_t* to = rows_are_time ? pixel_at(out, y, map.width - 1 - x) : pixel_at(out, x, y);
      to[0] = c.r, to[1] = c.g, to[2] = c.b;
    }
  return {cat(map.name, "  ", map.height, " x ", map.width, ", ", checking::number_text(map.least), " to ",
              checking::number_text(map.most)),
          of_width(out, width)};
}

Panel panel_of(const Image& image, int64_t width) {
  return {cat("image ", image.width, " x ", image.height), of_width(converted(image, PixelFormat::rgba8), width)};
}

Panel panel_of(const std::vector<ClassScore>& classes, int64_t width) {
  const auto height = static_cast<int64_t>(kLine * 1.4 * static_cast<double>(classes.size()));
  Canvas canvas(width, std::max<int64_t>(1, height), kBackground);
  for (size_t i = 0; i < classes.size(); ++i) {
    const double y = kLine * 1.4 * static_cast<double>(i), full = static_cast<double>(width);
    canvas.rect(0, y, full, kLine * 1.2, {44, 48, 56});
    canvas.rect(0, y, full * std::clamp(classes[i].probability, 0.0, 1.0), kLine * 1.2, {49, 104, 190});
    const std::string percent = percent_text(classes[i].probability);
    canvas.text(6, y + 6, classes[i].label, kText, kLine);
    canvas.text(full - 6 - canvas.text_width(percent, kLine), y + 6, percent, kText, kLine);
  }
  return {"classes", canvas.image()};
}

Image arranged(const std::vector<Panel>& panels, int64_t width) {
  struct Place {
    int64_t x, y;
  };
  std::vector<Place> places;
  const auto title = static_cast<int64_t>(kLine * 1.3);
  int64_t x = kGap, y = kGap, row = 0, most = 0;
  const Canvas ruler(1, 1, kBackground);
  for (const Panel& p : panels) {
    const int64_t wide = std::max(p.image.width, static_cast<int64_t>(ruler.text_width(p.title, kLine * 0.8)) + 1);
    if (x > kGap && x + wide + kGap > width) x = kGap, y += row + kGap, row = 0;
    places.push_back({x, y});
    x += wide + kGap;
    row = std::max(row, p.image.height + (p.title.empty() ? 0 : title));
    most = std::max(most, x);
  }
  Canvas canvas(std::max<int64_t>(most, kGap + 1), y + row + kGap, kBackground);
  for (size_t i = 0; i < panels.size(); ++i) {
    const bool titled = !panels[i].title.empty();
    if (titled)
      canvas.text(static_cast<double>(places[i].x), static_cast<double>(places[i].y) + 4, panels[i].title, kDimText,
                  kLine * 0.8);
    canvas.paste(places[i].x, places[i].y + (titled ? title : 0), panels[i].image);
  }
  return canvas.image();
}

}  // namespace moka::drawing
