#include "io/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "io/io_error.h"

namespace moka::io {
namespace {

double weight_at(double x, Filter filter) {
  x = std::abs(x);
  if (filter == Filter::triangle) return std::max(0.0, 1 - x);
  if (x >= 3) return 0;
  if (x < 1e-9) return 1;
  const double p = std::numbers::pi * x;
  return 3 * std::sin(p) * std::sin(p / 3) / (p * p);
}

struct Taps {
  size_t first = 0;
  std::vector<float> weights;
};

/// For every target pixel the source pixels it is mixed from; the source box is [start, start + length).
std::vector<Taps> taps_for(size_t source, double start, double length, size_t target, Filter filter) {
  const double step = length / static_cast<double>(target);
  const double stretch = std::max(1.0, step);
  const double reach = (filter == Filter::triangle ? 1 : 3) * stretch;
  std::vector<Taps> result(target);
  for (size_t i = 0; i < target; ++i) {
    const double centre = start + (static_cast<double>(i) + 0.5) * step;
    const auto limit = static_cast<int64_t>(source);
    const int64_t first = std::clamp<int64_t>(static_cast<int64_t>(std::floor(centre - reach)), 0, limit - 1);
    const int64_t last = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(centre + reach)), first + 1, limit);
    result[i].first = static_cast<size_t>(first);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t s = first; s < last; ++s) {
      weights.push_back(weight_at((static_cast<double>(s) + 0.5 - centre) / stretch, filter));
      sum += weights.back();
    }
    for (double w : weights) result[i].weights.push_back(static_cast<float>(w / sum));
  }
  return result;
}

/// The named part of the source, resampled into `to` at the placement.
void draw(const Picture& from, Picture& to, const Placement& p, Filter filter) {
  const size_t n = from.channels;
  const auto columns = taps_for(from.width, p.source_x, p.source_width, p.width, filter);
  const auto rows = taps_for(from.height, p.source_y, p.source_height, p.height, filter);

  // Source rows are squeezed horizontally when they are first needed and dropped when no row below needs them.
  const size_t line_size = p.width * n;
  std::vector<std::vector<float>> lines(from.height);
  std::vector<float> source(from.width * n), mixed(line_size);
  const auto squeeze = [&](size_t y) {
    for (size_t x = 0; x < from.width; ++x) {
      const uint8_t* pixel = from.at(x, y);
      const float alpha = n == 4 ? static_cast<float>(pixel[3]) / 255 : 1;
      for (size_t c = 0; c < n; ++c) source[x * n + c] = c == 3 ? pixel[c] : static_cast<float>(pixel[c]) * alpha;
    }
    lines[y].assign(line_size, 0);
    for (size_t x = 0; x < p.width; ++x) {
      for (size_t t = 0; t < columns[x].weights.size(); ++t) {
        const float* pixel = &source[(columns[x].first + t) * n];
        for (size_t c = 0; c < n; ++c) lines[y][x * n + c] += columns[x].weights[t] * pixel[c];
      }
    }
  };

  size_t done = 0;
  for (size_t y = 0; y < p.height; ++y) {
    for (; done < rows[y].first; ++done) lines[done] = {};
    std::fill(mixed.begin(), mixed.end(), 0.0f);
    for (size_t t = 0; t < rows[y].weights.size(); ++t) {
      const size_t line = rows[y].first + t;
      if (lines[line].empty()) squeeze(line);
      for (size_t i = 0; i < line_size; ++i) mixed[i] += rows[y].weights[t] * lines[line][i];
    }
    for (size_t x = 0; x < p.width; ++x) {
      uint8_t* pixel = to.at(p.x + x, p.y + y);
      const float scale = n == 4 ? (mixed[x * n + 3] > 0 ? 255 / mixed[x * n + 3] : 0.0f) : 1;
      for (size_t c = 0; c < n; ++c) {
        const float value = mixed[x * n + c] * (c == 3 ? 1 : scale);
        pixel[c] = static_cast<uint8_t>(std::clamp(std::lround(value), 0l, 255l));
      }
    }
  }
}

void require_pixels(const Picture& picture) {
  if (picture.channels == 0 || picture.channels > 4 ||
      picture.pixels.size() != picture.width * picture.height * picture.channels) {
    fail("resize", "expected ", picture.width, " x ", picture.height, " pixels of 1 to 4 channels, got ",
         picture.pixels.size(), " bytes in ", picture.channels, " channels");
  }
}

}  // namespace

Fit parse_fit(std::string_view text) {
  if (text == "scaleFill") return Fit::scale_fill;
  if (text == "scaleFit") return Fit::scale_fit;
  if (text == "centerCrop") return Fit::center_crop;
  fail("fit", "expected scaleFill, scaleFit or centerCrop, got '", text, "'");
}

Placement place(size_t source_width, size_t source_height, size_t width, size_t height, Fit fit) {
  if (source_width == 0 || source_height == 0 || width == 0 || height == 0) {
    fail("resize", "expected sizes above 0, got ", source_width, " x ", source_height, " to ", width, " x ", height);
  }
  const auto sw = static_cast<double>(source_width), sh = static_cast<double>(source_height);
  const double across = static_cast<double>(width) / sw, down = static_cast<double>(height) / sh;
  Placement p{0, 0, sw, sh, 0, 0, width, height};
  if (fit == Fit::scale_fit) {
    const double scale = std::min(across, down);
    p.width = std::clamp<size_t>(static_cast<size_t>(std::lround(sw * scale)), 1, width);
    p.height = std::clamp<size_t>(static_cast<size_t>(std::lround(sh * scale)), 1, height);
    p.x = (width - p.width) / 2;
    p.y = (height - p.height) / 2;
  } else if (fit == Fit::center_crop) {
    const double scale = std::max(across, down);
    p.source_width = std::min(sw, static_cast<double>(width) / scale);
    p.source_height = std::min(sh, static_cast<double>(height) / scale);
    p.source_x = (sw - p.source_width) / 2;
    p.source_y = (sh - p.source_height) / 2;
  }
  return p;
}

Picture resize(const Picture& picture, size_t width, size_t height, Filter filter) {
  return fit(picture, width, height, Fit::scale_fill, filter);
}

Picture fit(const Picture& picture, size_t width, size_t height, Fit how, Filter filter) {
  require_pixels(picture);
  const Placement placement = place(picture.width, picture.height, width, height, how);
  if (width == picture.width && height == picture.height) return picture;
  Picture result = Picture::blank(width, height, picture.channels);
  draw(picture, result, placement, filter);
  return result;
}

}  // namespace moka::io
