// SPDX-License-Identifier: Apache-2.0
#include "drawing/detections.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "files/text.h"

namespace moka::drawing {
namespace {

constexpr double kLeastConfidence = 0.25, kMostOverlap = 0.45;
constexpr size_t kMostBoxes = 300;

/// The strings in quotes of Python's or JSON's dictionary or list, by their keys or positions.
std::vector<std::string> quoted_names(const std::string& text) {
  std::map<size_t, std::string> found;
  size_t key = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      key = 0;
      while (i < text.size() && text[i] >= '0' && text[i] <= '9' && key < 100'000)
        key = key * 10 + static_cast<size_t>(text[i++] - '0');
      --i;
    } else if (text[i] == '\'' || text[i] == '"') {
      const char quote = text[i];
      std::string name;
      for (++i; i < text.size() && text[i] != quote; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        name += text[i];
      }
      // {"0": "person"}: a key in quotes
      const size_t next = text.find_first_not_of(' ', i + 1);
      if (const auto number = files::integer_in(name); number && next != std::string::npos && text[next] == ':') {
        key = static_cast<size_t>(std::clamp<int64_t>(*number, 0, 100'000));
        continue;
      }
      found[key++] = name;
    }
  }
  std::vector<std::string> out;
  for (auto& [index, name] : found) {
    if (index > 100'000) break;
    if (out.size() <= index) out.resize(index + 1);
    out[index] = std::move(name);
  }
  return out;
}

std::vector<std::string> labels_of(const ModelDescription& model) {
  return model.class_labels.empty() ? names_in_metadata(model) : model.class_labels;
}

std::string label_of(const std::vector<std::string>& labels, size_t index) {
  return index < labels.size() && !labels[index].empty() ? labels[index] : std::to_string(index);
}

bool has_shape(const MultiArray& array, int64_t rows, int64_t columns) {
  const auto& s = array.shape();
  return s.size() == 2 && (rows < 0 || s[0] == rows) && (columns < 0 || s[1] == columns);
}

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  const auto area = [](const Box& x) { return (x.right - x.left) * (x.bottom - x.top); };
  return width * height / (area(a) + area(b) - width * height);
}

void sort(std::vector<Box>& boxes) {
  std::stable_sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.confidence > b.confidence; });
}

/// Greedy suppression within a class. `boxes` are sorted.
std::vector<Box> suppressed(const std::vector<Box>& boxes) {
  std::vector<Box> out;
  for (const Box& box : boxes) {
    const bool covered = std::any_of(out.begin(), out.end(), [&](const Box& kept) {
      return kept.index == box.index && overlap(kept, box) > kMostOverlap;
    });
    if (!covered) out.push_back(box);
    if (out.size() == kMostBoxes) break;
  }
  return out;
}

/// The class with the greatest score among `count` elements from `first`, `step` apart.
std::pair<size_t, double> best_class(const MultiArray& scores, int64_t first, int64_t step, int64_t count) {
  std::pair<size_t, double> best{0, count > 0 ? scores.at(first) : 0};
  for (int64_t c = 1; c < count; ++c)
    if (const double score = scores.at(first + c * step); score > best.second) best = {static_cast<size_t>(c), score};
  return best;
}

Box centered(double x, double y, double width, double height) {
  return {x - width / 2, y - height / 2, x + width / 2, y + height / 2, 0, {}, 0};
}

std::vector<Box> of_suppression(const MultiArray& coordinates, const MultiArray& confidence,
                                const std::vector<std::string>& labels) {
  std::vector<Box> out;
  const int64_t classes = confidence.shape()[1];
  for (int64_t n = 0; n < coordinates.shape()[0]; ++n) {
    Box box = centered(coordinates.at(n * 4), coordinates.at(n * 4 + 1), coordinates.at(n * 4 + 2),
                       coordinates.at(n * 4 + 3));
    std::tie(box.index, box.confidence) = best_class(confidence, n * classes, 1, classes);
    box.label = label_of(labels, box.index);
    if (box.confidence > 0) out.push_back(std::move(box));
  }
  sort(out);
  return out;
}

std::vector<Box> of_ultralytics(const MultiArray& array, const std::vector<std::string>& labels, double width,
                                double height) {
  std::vector<Box> out;
  const auto& shape = array.shape();
  const bool finished = shape[2] == 6;
  const int64_t count = finished ? shape[1] : shape[2], classes = shape[1] - 4;
  for (int64_t n = 0; n < count; ++n) {
    Box box;
    if (finished) {
      const auto at = [&](int64_t i) { return array.at(n * 6 + i); };
      box = {at(0) / width, at(1) / height, at(2) / width, at(3) / height, 0, {}, at(4)};
      box.index = static_cast<size_t>(std::clamp(at(5), 0.0, 1e6));
    } else {
      const auto at = [&](int64_t i) { return array.at(i * count + n); };
      box = centered(at(0) / width, at(1) / height, at(2) / width, at(3) / height);
      std::tie(box.index, box.confidence) = best_class(array, 4 * count + n, count, classes);
    }
    if (!(box.confidence >= kLeastConfidence)) continue;
    box.label = label_of(labels, box.index);
    out.push_back(std::move(box));
  }
  sort(out);
  return finished ? out : suppressed(out);
}

}  // namespace

std::vector<std::string> names_in_metadata(const ModelDescription& model) {
  if (const auto names = model.user_defined.find("names"); names != model.user_defined.end())
    return quoted_names(names->second);
  std::vector<std::string> out;
  const auto classes = model.user_defined.find("classes");
  if (classes == model.user_defined.end()) return out;
  for (size_t at = 0; at <= classes->second.size();) {
    const size_t end = std::min(classes->second.find(',', at), classes->second.size());
    std::string name = classes->second.substr(at, end - at);
    name.erase(0, name.find_first_not_of(' '));
    out.push_back(std::move(name));
    at = end + 1;
  }
  return out;
}

std::vector<Box> detections_of(const Features& outputs, const ModelDescription& model, int64_t image_width,
                               int64_t image_height, std::vector<std::string>& used) {
  const std::vector<std::string> labels = labels_of(model);
  const auto task = model.user_defined.find("task");
  const bool detects = task != model.user_defined.end() && task->second == "detect";
  for (const auto& [name, value] : outputs) {
    const auto* array = std::get_if<MultiArray>(&value);
    if (!array) continue;
    const auto& shape = array->shape();
    if (detects && shape.size() == 3 && shape[0] == 1 && (shape[2] == 6 || (shape[1] > 4 && shape[2] >= shape[1]))) {
      used.push_back(name);
      return of_ultralytics(*array, labels, static_cast<double>(image_width), static_cast<double>(image_height));
    }
    const std::string lower = files::in_lower_case(name);
    if (!has_shape(*array, -1, 4) ||
        (lower.find("coord") == std::string::npos && lower.find("box") == std::string::npos))
      continue;
    for (const auto& [other, scores] : outputs) {
      const auto* confidence = std::get_if<MultiArray>(&scores);
      const std::string kind = files::in_lower_case(other);
      if (!confidence || other == name || !has_shape(*confidence, shape[0], -1) ||
          (kind.find("conf") == std::string::npos && kind.find("score") == std::string::npos))
        continue;
      used.insert(used.end(), {name, other});
      return of_suppression(*array, *confidence, labels);
    }
  }
  return {};
}

}  // namespace moka::drawing
