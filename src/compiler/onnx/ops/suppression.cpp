// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

constexpr double kLowest = -std::numeric_limits<float>::max();

/// The arguments of a non-maximum suppression.
struct Suppression {
  Name boxes;             ///< [N, 4] of float32: center and size
  Name scores;            ///< [N, classes] of float32
  Name threshold;         ///< of scores, rank 0; empty: none
  bool at_least = false;  ///< a score equal to the threshold stays
  Name overlap;           ///< [1]
  int64_t classes = 1;
  bool per_class = false;
  int64_t most = -1;  ///< negative: all
};

/// The positions of the boxes that stay, best first.
Name kept(Call& c, const Suppression& s) {
  const DType f = DType::fp32;
  const Name best = c.reduce("ReduceMax", s.scores, {1}, false);
  Name valid = best;
  if (!s.threshold.empty()) {
    const Name good = c.node(s.at_least ? "GreaterOrEqual" : "Greater", {best, s.threshold});
    valid = c.node("Where", {good, best, c.scalar(f, kLowest)});
  }
  if (s.per_class) {
    // Each box competes in the class of its best score.
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < s.classes; i++) numbers.push_back(i);
    ox::Tensor column;
    column.type = DataType::int64;
    column.dims = {s.classes, 1};
    column.raw = Bytes::copy_of(std::as_bytes(std::span(numbers)));
    const Name label = c.node("ArgMax", {s.scores}, {attr("axis", 1), attr("keepdims", 0)});
    const Name mine = c.node("Equal", {c.unsqueeze(label, {0}), c.graph.initializer(std::move(column))});
    valid = c.unsqueeze(c.node("Where", {mine, valid, c.scalar(f, kLowest)}), {0});
  } else {
    valid = c.unsqueeze(valid, {0, 1});
  }
  constexpr int64_t all = 1 << 30;
  const Name lowest = c.graph.tensor(ir::Tensor::scalar(f, kLowest).reshaped({1}));
  const Name chosen = c.node("NonMaxSuppression",
                             {c.unsqueeze(s.boxes, {0}), valid, c.i64({s.most < 0 ? all : s.most}), s.overlap, lowest},
                             {attr("center_point_box", 1)});
  Name at = c.node("Gather", {chosen, c.graph.int64_scalar(2)}, {attr("axis", 1)});
  if (s.per_class) {
    const Name order = c.node("Gather", {best, at});
    at = c.node("Gather", {at, c.nodes("TopK", {order, c.node("Shape", {order})}, {attr("axis", 0)}, 2)[1]});
    if (s.most >= 0) at = c.slice(at, 0, 0, s.most);
  }
  return at;
}

Name as_float(Call& c, const Name& x, DType t) { return t == DType::fp32 ? x : c.cast(x, DType::fp32); }

/// max(0, n - the length of a vector), as a vector of one element.
Name missing(Call& c, const Name& vector, int64_t n) {
  return c.node("Max", {c.node("Sub", {c.i64({n}), c.node("Shape", {vector})}), c.i64({0})});
}

Name one_float(Call& c, double v) { return c.graph.tensor(ir::Tensor::scalar(DType::fp32, v).reshaped({1})); }

/// The images of a batch, one after the other.
void suppression(Call& c) {
  const bool boxes_last = c.op.version().since >= ir::Opset::ios17;
  const ir::Type &boxes = c.type("boxes"), &scores = c.type("scores");
  if (!boxes.is_ranked() || !scores.is_ranked()) return c.refuse("the rank of its inputs is not known");
  const int64_t batch = boxes.shape()[0] >= 0 ? boxes.shape()[0] : scores.shape()[0];
  const int64_t most = c.integer("max_boxes");
  Suppression s;
  s.classes = scores.shape()[boxes_last ? 1 : 2];
  s.per_class = c.flag("per_class_suppression");
  s.most = most;
  constexpr int64_t most_images = 64;
  if (batch < 0 || batch > most_images || s.classes < 0)
    return c.refuse("the number of its images or classes is not known");
  auto overlap = static_cast<float>(c.number("iou_threshold"));
  // An overlap equal to the threshold suppresses, too.
  if (boxes_last) overlap = std::nextafter(overlap, -1.0f);
  s.overlap = one_float(c, std::max(overlap, 0.0f));
  if (!boxes_last) s.threshold = c.scalar(DType::fp32, c.number("score_threshold"));
  std::vector<Name> results[4];
  for (int64_t b = 0; b < batch && !c.refused(); b++) {
    const auto image = [&](const char* param) {
      const Name x = c.node("Gather", {c.x(param), c.graph.int64_scalar(b)}, {attr("axis", 0)});
      return boxes_last ? c.transpose(x, {1, 0}) : x;
    };
    const Name own_boxes = image("boxes"), own_scores = image("scores");
    s.boxes = as_float(c, own_boxes, boxes.dtype());
    s.scores = as_float(c, own_scores, scores.dtype());
    const Name at = kept(c, s);
    // Places without a box have position -1, which is a row of zeros after the last one.
    const Name pads = c.node("Concat", {c.i64({0}), missing(c, at, most)}, {attr("axis", 0)});
    const Name padded = c.node("Pad", {at, pads, c.graph.int64_scalar(-1)});
    const Name rows[] = {own_boxes, own_scores};
    for (int i = 0; i < 2; i++) {
      const Name ended = c.node("Pad", {rows[i], c.i64({0, 0, 1, 0})});
      const Name taken = c.node("Gather", {ended, padded}, {attr("axis", 0)});
      results[i].push_back(c.unsqueeze(boxes_last ? c.transpose(taken, {1, 0}) : taken, {0}));
    }
    results[2].push_back(c.unsqueeze(padded, {0}));
    results[3].push_back(c.node("Shape", {at}));
  }
  if (batch == 0) return c.refuse("it has no images");
  for (size_t i = 0; i < c.op.output_count() && i < 4; i++) {
    const Name y = results[i].size() == 1 ? results[i][0] : c.node("Concat", results[i], {attr("axis", 0)});
    if (i < 2)
      c.set(y, i);
    else
      c.set_int64(y, i);
  }
}

/// A threshold as a tensor of rank 0: the input unless it is NaN or absent, else the default.
Name threshold(Call& c, const char* param, const char* otherwise) {
  const Name own = c.scalar(DType::fp32, c.number(otherwise));
  if (!c.has(param)) return own;
  Name v = as_float(c, c.x(param), c.dtype(param));
  if (!c.type(param).is_ranked() || c.type(param).rank() != 0) v = c.reshape(v, {});
  return c.node("Where", {c.node("IsNaN", {v}), own, v});
}

/// The rows of boxes and confidences that stay.
void rows(Call& c) {
  const ir::Type &boxes = c.type("coordinates"), &scores = c.type("confidence");
  if (!scores.is_ranked() || scores.rank() != 2) return c.refuse("the rank of its inputs is not known");
  Suppression s;
  s.classes = scores.shape()[1];
  s.per_class = c.flag("per_class");
  s.most = c.integer("max_boxes");
  if (s.per_class && s.classes < 0) return c.refuse("the number of its classes is not known");
  const int64_t least = c.integer("min_boxes");
  s.boxes = as_float(c, c.x("coordinates"), boxes.dtype());
  s.scores = as_float(c, c.x("confidence"), scores.dtype());
  s.threshold = threshold(c, "confidence_threshold", "default_confidence_threshold");
  s.at_least = true;
  s.overlap = c.reshape(threshold(c, "iou_threshold", "default_iou_threshold"), {1});
  const Name at = kept(c, s);
  const char* const params[] = {"coordinates", "confidence"};
  for (size_t i = 0; i < 2; i++) {
    Name y = c.node("Gather", {c.x(params[i]), at}, {attr("axis", 0)});
    if (least > 0) {
      const Name pads = c.node("Concat", {c.i64({0, 0}), missing(c, at, least), c.i64({0})}, {attr("axis", 0)});
      y = c.node("Pad", {y, pads});
    }
    c.set(y, i);
  }
}

}  // namespace

std::span<const OpWriter> writers_suppression();
std::span<const OpWriter> writers_suppression() {
  static constexpr OpWriter list[] = {{"non_maximum_suppression", suppression}, {"ml_non_maximum_suppression", rows}};
  return list;
}

}  // namespace moka::compiler::onnx
