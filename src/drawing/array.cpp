// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "drawing/panels.h"
#include "files/pixels.h"
#include "moka/difference.h"

namespace moka {
namespace drawing {
namespace {

constexpr int64_t kLeastCells = 64, kLeastColumns = 4, kMostPlanes = 48;
/// A plane shows every n-th row or column of a longer side.
constexpr int64_t kMostSide = 512;
constexpr int64_t kOneWidth = 480, kManyWidth = 112, kSheetWidth = 1000;
constexpr Color kNotFinite{255, 40, 40};

Image plane(const MultiArray& array, int64_t first, int64_t rows, int64_t columns, const ArrayFacts& facts) {
  const int64_t down = (rows + kMostSide - 1) / kMostSide, right = (columns + kMostSide - 1) / kMostSide;
  Image out = blank((columns + right - 1) / right, (rows + down - 1) / down);
  const double range = facts.most > facts.least ? facts.most - facts.least : 1;
  for (int64_t y = 0; y < rows; y += down)
    for (int64_t x = 0; x < columns; x += right) {
      const double v = array.at(first + y * columns + x);
      const Color c = std::isfinite(v) ? heat_color((v - facts.least) / range) : kNotFinite;
      uint8_t* to = files::pixel_at(out, x / right, y / down);
      to[0] = c.r, to[1] = c.g, to[2] = c.b;
    }
  return out;
}

}  // namespace
}  // namespace drawing

std::optional<ArrayDrawing> draw_array(const MultiArray& array, const ArrayFacts& facts) {
  using namespace drawing;
  std::vector<int64_t> shape;
  for (const int64_t d : array.shape())
    if (d != 1) shape.push_back(d);
  if (shape.size() < 2 || array.count() == 0) return std::nullopt;
  ArrayDrawing out;
  out.rows = shape[shape.size() - 2];
  out.columns = shape[shape.size() - 1];
  if (out.rows * out.columns < kLeastCells || out.columns < kLeastColumns) return std::nullopt;
  out.planes = array.count() / (out.rows * out.columns);
  out.shown = std::min(out.planes, kMostPlanes);
  const int64_t width = out.planes == 1 ? kOneWidth : kManyWidth;
  std::vector<Panel> panels;
  for (int64_t p = 0; p < out.shown; ++p)
    panels.push_back({out.planes == 1 ? "" : std::to_string(p),
                      of_width(plane(array, p * out.rows * out.columns, out.rows, out.columns, facts), width)});
  out.image = arranged(panels, kSheetWidth);
  return out;
}

}  // namespace moka
