// SPDX-License-Identifier: Apache-2.0
#include "draw/sheet.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "draw/panels.h"

namespace moka::cli {
namespace {

constexpr int64_t kLeastCells = 64, kLeastColumns = 4, kMostPlanes = 48;
/// A plane shows every n-th row or column of a longer side.
constexpr int64_t kMostSide = 512;
constexpr size_t kOneWidth = 480, kManyWidth = 112, kSheetWidth = 1000;
constexpr Color kNotFinite{255, 40, 40};

io::Picture plane(const MultiArray& array, int64_t first, int64_t rows, int64_t columns, const ArrayFacts& facts) {
  const int64_t down = (rows + kMostSide - 1) / kMostSide, right = (columns + kMostSide - 1) / kMostSide;
  io::Picture out = io::Picture::blank(static_cast<size_t>((columns + right - 1) / right),
                                       static_cast<size_t>((rows + down - 1) / down), 4);
  const double range = facts.most > facts.least ? facts.most - facts.least : 1;
  for (int64_t y = 0; y < rows; y += down)
    for (int64_t x = 0; x < columns; x += right) {
      const double v = array.at(first + y * columns + x);
      const Color c = std::isfinite(v) ? heat_color((v - facts.least) / range) : kNotFinite;
      uint8_t* to = out.at(static_cast<size_t>(x / right), static_cast<size_t>(y / down));
      to[0] = c.r, to[1] = c.g, to[2] = c.b;
    }
  return out;
}

}  // namespace

Sheet sheet_of(const MultiArray& array, const ArrayFacts& facts) {
  std::vector<int64_t> shape;
  for (const int64_t d : array.shape())
    if (d != 1) shape.push_back(d);
  Sheet out;
  if (shape.size() < 2 || array.count() == 0) return out;
  out.rows = shape[shape.size() - 2];
  out.columns = shape[shape.size() - 1];
  if (out.rows * out.columns < kLeastCells || out.columns < kLeastColumns) return out;
  out.planes = array.count() / (out.rows * out.columns);
  out.shown = std::min(out.planes, kMostPlanes);
  const size_t width = out.planes == 1 ? kOneWidth : kManyWidth;
  std::vector<Panel> panels;
  for (int64_t p = 0; p < out.shown; ++p)
    panels.push_back({out.planes == 1 ? "" : std::to_string(p),
                      of_width(plane(array, p * out.rows * out.columns, out.rows, out.columns, facts), width)});
  out.picture = arranged(panels, kSheetWidth);
  return out;
}

}  // namespace moka::cli
