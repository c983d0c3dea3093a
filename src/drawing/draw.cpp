// SPDX-License-Identifier: Apache-2.0
#include "drawing/draw.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "checking/text.h"
#include "drawing/panels.h"
#include "files/pixels.h"
#include "files/placement.h"

namespace moka::drawing {
namespace {

constexpr int64_t kLeastWidth = 480, kPanelWidth = 320, kMostWidth = 1400;
/// Key points that are less certain are not drawn.
constexpr double kLeastPoint = 0.1;

/// Each pixel in the color of its segment; class 0 is the background.
void draw(Canvas& canvas, const Segments& s, const View& view) {
  Image mask = blank(canvas.width(), canvas.height());
  for (int64_t y = 0; y < mask.height; ++y)
    for (int64_t x = 0; x < mask.width; ++x) {
      uint8_t* to = files::pixel_at(mask, x, y);
      to[3] = 0;
      const double column = (static_cast<double>(x) + 0.5 - view.x) / view.width * static_cast<double>(s.width);
      const double row = (static_cast<double>(y) + 0.5 - view.y) / view.height * static_cast<double>(s.height);
      if (!(column >= 0 && row >= 0 && column < static_cast<double>(s.width) && row < static_cast<double>(s.height)))
        continue;
      const uint32_t index =
          s.classes[static_cast<size_t>(static_cast<int64_t>(row) * s.width + static_cast<int64_t>(column))];
      if (index == 0) continue;
      const Color c = index < s.colors.size() ? s.colors[index] : distinct_color(index - 1);
      to[0] = c.r, to[1] = c.g, to[2] = c.b, to[3] = 140;
    }
  canvas.paste(0, 0, mask);
}

/// The classes of a mask with the share of the image that they cover.
Panel legend_of(const Segments& s) {
  std::vector<size_t> counts;
  for (const uint32_t c : s.classes) {
    if (c >= counts.size()) counts.resize(c + 1);
    ++counts[c];
  }
  std::vector<ClassScore> shares;
  for (size_t c = 0; c < counts.size(); ++c)
    if (counts[c]) {
      const std::string label = c < s.labels.size() ? s.labels[c] : c == 0 ? "background" : cat("class ", c);
      shares.push_back({label, static_cast<double>(counts[c]) / static_cast<double>(s.classes.size())});
    }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  if (shares.size() > 8) shares.resize(8);
  Panel panel = panel_of(shares, kPanelWidth);
  panel.title = s.name;
  return panel;
}

void draw(Canvas& canvas, const std::vector<Box>& boxes, const View& view) {
  const double size = std::clamp(static_cast<double>(canvas.height()) / 28, 14.0, 36.0),
               thickness = std::max(2.0, size / 8);
  for (auto box = boxes.rbegin(); box != boxes.rend(); ++box) {
    const Color color = distinct_color(box->index);
    const double x = view.x + box->left * view.width, y = view.y + box->top * view.height;
    const double width = (box->right - box->left) * view.width, height = (box->bottom - box->top) * view.height;
    canvas.outline(x, y, width, height, thickness, color);
    const std::string label = cat(box->label, " ", std::lround(100 * box->confidence), "%");
    const double text = canvas.text_width(label, size) + size * 0.6, top = y >= size ? y - size : y;
    canvas.rect(x, top, text, size, color);
    canvas.text(x + size * 0.3, top + (size - canvas.text_height(size)) / 2, label, readable_on(color), size);
  }
}

void draw(Canvas& canvas, const std::vector<KeyPoint>& points, const View& view) {
  const double radius = std::max(3.0, static_cast<double>(canvas.height()) / 90);
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].confidence < kLeastPoint) continue;
    const double x = view.x + points[i].x * view.width, y = view.y + points[i].y * view.height;
    canvas.disc(x, y, radius + 1.5, {0, 0, 0});
    canvas.disc(x, y, radius, distinct_color(i));
    canvas.text(x + radius + 3, y - radius, std::to_string(i), kText, radius * 2.4);
  }
}

void add_panels(std::vector<Panel>& out, const Preview& preview, bool rows_are_time, int64_t width) {
  for (const Image& image : preview.images) out.push_back(panel_of(image, width));
  for (const Map& map : preview.maps) out.push_back(panel_of(map, width, rows_are_time));
  if (!preview.classes.empty()) out.push_back(panel_of(preview.classes, width));
}

/// Powers of two frequencies by Cooley and Tukey, in place.
void fourier(std::vector<std::pair<double, double>>& x) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t length = 2; length <= n; length <<= 1) {
    const double angle = -2 * M_PI / static_cast<double>(length);
    for (size_t i = 0; i < n; i += length)
      for (size_t k = 0; k < length / 2; ++k) {
        const double c = std::cos(angle * static_cast<double>(k)), s = std::sin(angle * static_cast<double>(k));
        auto& a = x[i + k];
        auto& b = x[i + k + length / 2];
        const std::pair<double, double> t{b.first * c - b.second * s, b.first * s + b.second * c};
        b = {a.first - t.first, a.second - t.second};
        a = {a.first + t.first, a.second + t.second};
      }
  }
}

/// Decibels below the loudest, 80 at most; rows are time.
Map spectrogram(std::span<const float> samples) {
  constexpr size_t kWindow = 512, kRows = 128, kMostColumns = 640;
  Map map{"spectrogram, dB", kRows, 0, {}, 0, 0};
  const size_t hop = std::max<size_t>(kWindow / 4, samples.size() / kMostColumns + 1);
  std::vector<std::pair<double, double>> window(kWindow);
  for (size_t begin = 0; begin + kWindow / 2 < samples.size(); begin += hop) {
    for (size_t i = 0; i < kWindow; ++i) {
      const double hann = 0.5 - 0.5 * std::cos(2 * M_PI * static_cast<double>(i) / kWindow);
      const double v = begin + i < samples.size() ? static_cast<double>(samples[begin + i]) : 0;
      window[i] = {std::isfinite(v) ? v * hann : 0, 0};
    }
    fourier(window);
    for (size_t r = 0; r < kRows; ++r) {
      double power = 1e-12;
      for (size_t k = 2 * r; k < 2 * r + 2; ++k)
        power += window[k].first * window[k].first + window[k].second * window[k].second;
      map.values.push_back(static_cast<float>(10 * std::log10(power)));
    }
    ++map.height;
  }
  const auto loudest = std::max_element(map.values.begin(), map.values.end());
  map.most = loudest == map.values.end() ? 0 : static_cast<double>(*loudest);
  map.least = map.most - 80;
  return map;
}

}  // namespace

View view_of(const Image& picture, int64_t width, int64_t height, ImageFit fit, const ImageRegion& region) {
  const files::Placement p = files::place(picture.width, picture.height, width, height, fit, region);
  const double x = p.source_width / static_cast<double>(p.width), y = p.source_height / static_cast<double>(p.height);
  return {p.source_x - static_cast<double>(p.x) * x, p.source_y - static_cast<double>(p.y) * y,
          static_cast<double>(width) * x, static_cast<double>(height) * y};
}

Image draw_on_picture(const Preview& preview, const Image& picture, const View& view) {
  const int64_t factor = std::clamp<int64_t>((kLeastWidth + picture.width - 1) / picture.width, 1, 16);
  const auto scale = static_cast<double>(factor);
  Canvas canvas(factor == 1 ? picture : fit_image(picture, picture.width * factor, picture.height * factor));
  const View scaled{view.x * scale, view.y * scale, view.width * scale, view.height * scale};
  for (const Segments& s : preview.segments) draw(canvas, s, scaled);
  draw(canvas, preview.boxes, scaled);
  draw(canvas, preview.points, scaled);
  std::vector<Panel> panels{{"", canvas.image()}};
  for (const Segments& s : preview.segments) panels.push_back(legend_of(s));
  add_panels(panels, preview, false, kPanelWidth);
  return panels.size() == 1 ? canvas.image() : arranged(panels, std::max(kMostWidth, canvas.width() + 2 * kPanelWidth));
}

Image draw_on_sound(const Preview& preview, std::span<const float> samples) {
  std::vector<Panel> panels;
  constexpr int64_t kWidth = 960;
  const auto stretched = [](Panel panel) {
    panel.image = fit_image(panel.image, kWidth, std::clamp<int64_t>(panel.image.height, 160, 320));
    return panel;
  };
  panels.push_back(stretched(panel_of(spectrogram(samples), kWidth, true)));
  for (const Map& map : preview.maps) panels.push_back(stretched(panel_of(map, kWidth, true)));
  if (!preview.classes.empty()) panels.push_back(panel_of(preview.classes, kWidth));
  return arranged(panels, kWidth + 32);
}

Image draw_alone(const Preview& preview) {
  std::vector<Panel> panels;
  for (const Segments& s : preview.segments) panels.push_back(legend_of(s));
  add_panels(panels, preview, false, kPanelWidth);
  return arranged(panels, kMostWidth);
}

std::string summary_of(const Preview& preview) {
  std::string out;
  const auto add = [&](size_t count, std::string_view word) {
    if (count) out += (out.empty() ? "" : ", ") + checking::count_text(static_cast<int64_t>(count), word);
  };
  if (!preview.boxes.empty()) out = preview.boxes.size() == 1 ? "1 box" : cat(preview.boxes.size(), " boxes");
  add(static_cast<size_t>(std::count_if(preview.points.begin(), preview.points.end(),
                                        [](const KeyPoint& p) { return p.confidence >= kLeastPoint; })),
      "key point");
  add(preview.segments.size(), "mask");
  add(preview.maps.size(), "map");
  add(preview.images.size(), "image");
  if (!preview.classes.empty())
    out += (out.empty() ? "" : ", ") +
           (preview.classes.size() == 1 ? std::string("1 class") : cat(preview.classes.size(), " classes"));
  return out.empty() ? "no certain key points" : out;
}

}  // namespace moka::drawing
