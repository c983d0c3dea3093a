// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "checking/text.h"
#include "drawing/panels.h"

namespace moka {
namespace drawing {
namespace {

constexpr int64_t kWidth = 960, kHeight = 240;
constexpr size_t kMostLines = 8;

/// A name and a number for each row; NaN where the row has none.
struct Series {
  std::string name;
  std::vector<double> values;
};

/// Numbers, arrays of one element, and the classes of dictionaries in order of their sums.
std::vector<Series> series_of(std::span<const Features> rows, const FunctionDescription& function) {
  std::vector<Series> out;
  for (const FeatureDescription& output : function.outputs) {
    std::map<std::string, Series> found;
    const auto set = [&](const std::string& name, size_t row, double value) {
      Series& s = found.try_emplace(name, Series{name, std::vector<double>(rows.size(), NAN)}).first->second;
      s.values[row] = value;
    };
    for (size_t r = 0; r < rows.size(); ++r) {
      const FeatureValue* value = rows[r].find(output.name);
      if (!value) continue;
      if (const auto* whole = std::get_if<int64_t>(value)) set(output.name, r, static_cast<double>(*whole));
      if (const auto* number = std::get_if<double>(value)) set(output.name, r, *number);
      if (const auto* array = std::get_if<MultiArray>(value); array && array->count() == 1)
        set(output.name, r, array->at(0));
      if (const auto* scores = std::get_if<Dictionary>(value)) {
        for (const auto& [label, v] : scores->strings) set(label, r, v);
        for (const auto& [label, v] : scores->ints) set(std::to_string(label), r, v);
      }
    }
    std::vector<Series> lines;
    for (auto& [name, s] : found) lines.push_back(std::move(s));
    const auto sum = [](const Series& s) {
      double total = 0;
      for (const double v : s.values) total += std::isfinite(v) ? v : 0;
      return total;
    };
    std::stable_sort(lines.begin(), lines.end(), [&](const Series& a, const Series& b) { return sum(a) > sum(b); });
    if (lines.size() > kMostLines) lines.resize(kMostLines);
    std::move(lines.begin(), lines.end(), std::back_inserter(out));
  }
  return out;
}

Panel panel_of(const Series& series, size_t index) {
  double least = INFINITY, most = -INFINITY;
  for (const double v : series.values)
    if (std::isfinite(v)) least = std::min(least, v), most = std::max(most, v);
  Canvas canvas(kWidth, kHeight, {34, 37, 43});
  if (!(most >= least)) return {series.name + "  no numbers", canvas.image()};
  const double range = most > least ? most - least : 1, margin = 8;
  const auto x_of = [&](size_t row) {
    return margin +
           (kWidth - 2 * margin) * (series.values.size() > 1
                                        ? static_cast<double>(row) / static_cast<double>(series.values.size() - 1)
                                        : 0.5);
  };
  const auto y_of = [&](double v) {
    return kHeight - margin - (kHeight - 2 * margin) * (most > least ? (v - least) / range : 0.5);
  };
  if (least < 0 && most > 0) canvas.line({{0, y_of(0)}, {kWidth, y_of(0)}}, 1, faded(kDimText, 0.5));
  std::vector<std::pair<double, double>> run;
  const auto end_run = [&] {
    if (run.size() == 1) canvas.disc(run[0].first, run[0].second, 3, distinct_color(index));
    canvas.line(run, 2, distinct_color(index));
    run.clear();
  };
  for (size_t r = 0; r < series.values.size(); ++r) {
    if (std::isfinite(series.values[r]))
      run.emplace_back(x_of(r), y_of(series.values[r]));
    else
      end_run();
  }
  end_run();
  return {cat(series.name, "  ", checking::number_text(least), " to ", checking::number_text(most), " over ",
              checking::count_text(static_cast<int64_t>(series.values.size()), "row")),
          canvas.image()};
}

}  // namespace
}  // namespace drawing

std::optional<Image> draw_rows(std::span<const Features> outputs, const FunctionDescription& function) {
  using namespace drawing;
  std::vector<Panel> panels;
  for (const Series& s : series_of(outputs, function)) panels.push_back(panel_of(s, panels.size()));
  if (panels.empty()) return std::nullopt;
  constexpr int64_t kMostInColumn = 200;  // an image has at most 65536 rows
  const int64_t columns = (static_cast<int64_t>(panels.size()) + kMostInColumn - 1) / kMostInColumn;
  return arranged(panels, columns * (kWidth + 12) + 20);
}

}  // namespace moka
