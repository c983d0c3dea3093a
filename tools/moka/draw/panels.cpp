// SPDX-License-Identifier: Apache-2.0
#include "draw/panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "convert.h"
#include "io/resize.h"
#include "text.h"

namespace moka::cli {
namespace {

constexpr size_t kGap = 12;
/// The greatest height of an enlarged picture: a map of thousands of rows and a few columns stays small.
constexpr size_t kMostHeight = 1600;

/// Every pixel becomes a square of so many.
io::Picture enlarged(const io::Picture& picture, size_t factor) {
  if (factor <= 1) return picture;
  io::Picture out = io::Picture::blank(picture.width * factor, picture.height * factor, 4);
  for (size_t y = 0; y < out.height; ++y)
    for (size_t x = 0; x < out.width; ++x) std::memcpy(out.at(x, y), picture.at(x / factor, y / factor), 4);
  return out;
}

}  // namespace

io::Picture of_width(const io::Picture& picture, size_t width) {
  if (picture.width > width)
    return io::resize(picture, width, std::max<size_t>(1, picture.height * width / picture.width));
  return enlarged(picture, std::max<size_t>(1, std::min(width / picture.width, kMostHeight / picture.height)));
}

io::Picture picture_of(const Image& image) {
  if (image.format != PixelFormat::gray_float32) return io::with_channels(to_picture(image), 4);
  io::Picture out = io::Picture::blank(static_cast<size_t>(image.width), static_cast<size_t>(image.height), 1);
  const io::Array values = to_float_array(image);
  std::transform(values.as<float>().begin(), values.as<float>().end(), out.pixels.begin(),
                 [](float v) { return static_cast<uint8_t>(std::clamp(std::isnan(v) ? 0.0F : v, 0.0F, 255.0F)); });
  return io::with_channels(out, 4);
}

Panel panel_of(const Map& map, size_t width, bool rows_are_time) {
  io::Picture out =
      rows_are_time ? io::Picture::blank(map.height, map.width, 4) : io::Picture::blank(map.width, map.height, 4);
  const double range = map.most > map.least ? map.most - map.least : 1;
  for (size_t y = 0; y < map.height; ++y)
    for (size_t x = 0; x < map.width; ++x) {
      const Color c = heat_color((static_cast<double>(map.values[y * map.width + x]) - map.least) / range);
      uint8_t* to = rows_are_time ? out.at(y, map.width - 1 - x) : out.at(x, y);
      to[0] = c.r, to[1] = c.g, to[2] = c.b;
    }
  return {fmt::format("{}  {} x {}, {} to {}", map.name, map.height, map.width, format_number(map.least),
                      format_number(map.most)),
          of_width(out, width)};
}

Panel panel_of(const Image& image, size_t width) {
  return {fmt::format("image {} x {}", image.width, image.height), of_width(picture_of(image), width)};
}

Panel panel_of(const std::vector<ClassScore>& classes, size_t width) {
  const auto height = static_cast<size_t>(kLine * 1.4 * static_cast<double>(classes.size()));
  Canvas canvas(width, std::max<size_t>(1, height), kBackground);
  for (size_t i = 0; i < classes.size(); ++i) {
    const double y = kLine * 1.4 * static_cast<double>(i), full = static_cast<double>(width);
    canvas.rect(0, y, full, kLine * 1.2, {44, 48, 56});
    canvas.rect(0, y, full * std::clamp(classes[i].probability, 0.0, 1.0), kLine * 1.2, {49, 104, 190});
    const std::string percent = format_percent(classes[i].probability);
    canvas.text(6, y + 6, classes[i].label, kText, kLine);
    canvas.text(full - 6 - canvas.text_width(percent, kLine), y + 6, percent, kText, kLine);
  }
  return {"classes", canvas.picture()};
}

io::Picture arranged(const std::vector<Panel>& panels, size_t width) {
  struct Place {
    size_t x, y;
  };
  std::vector<Place> places;
  const auto title = static_cast<size_t>(kLine * 1.3);
  size_t x = kGap, y = kGap, row = 0, most = 0;
  const Canvas ruler(1, 1, kBackground);
  for (const Panel& p : panels) {
    const size_t wide = std::max(p.picture.width, static_cast<size_t>(ruler.text_width(p.title, kLine * 0.8)) + 1);
    if (x > kGap && x + wide + kGap > width) x = kGap, y += row + kGap, row = 0;
    places.push_back({x, y});
    x += wide + kGap;
    row = std::max(row, p.picture.height + (p.title.empty() ? 0 : title));
    most = std::max(most, x);
  }
  Canvas canvas(std::max<size_t>(most, kGap + 1), y + row + kGap, kBackground);
  for (size_t i = 0; i < panels.size(); ++i) {
    const bool titled = !panels[i].title.empty();
    if (titled)
      canvas.text(static_cast<double>(places[i].x), static_cast<double>(places[i].y) + 4, panels[i].title, kDimText,
                  kLine * 0.8);
    canvas.paste(static_cast<int64_t>(places[i].x), static_cast<int64_t>(places[i].y + (titled ? title : 0)),
                 panels[i].picture);
  }
  return canvas.picture();
}

}  // namespace moka::cli
