// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

/// Boxes and scores with the highest score first, kept unless they overlap one that was kept: for each batch and class
/// by itself. The number of results depends on the values, so they are collected by non_zero.
void non_max_suppression(Node& n) {
  Value *boxes = n.in(0), *scores = n.in(1);
  const Shape b = n.known_shape(boxes, "NonMaxSuppression"), s = n.known_shape(scores, "NonMaxSuppression");
  if (b.rank() != 3 || s.rank() != 3 || b[2] != 4 || s[2] != b[1]) n.malformed("boxes and scores do not fit");
  const int64_t count = b[1];
  constexpr int64_t most = 256;
  if (count > most) n.unsupported(cat(count, " boxes: expected at most ", most));
  int64_t limit = n.has(2) ? n.integer(2, "max_output_boxes_per_class") : 0;
  limit = std::clamp<int64_t>(limit, 0, count);
  const double overlap = n.has(3) ? n.number(3, "iou_threshold") : 0;
  const bool filters = n.has(4);
  const double least = filters ? n.number(4, "score_threshold") : 0;
  if (limit == 0) {
    Tensor none = need(Tensor::zeros(DType::int32, Shape{0, 3}));
    return n.set(0, n.constant(none), DataType::int64);
  }
  const auto column = [&](int64_t i) { return n.squeeze(n.slice(boxes, 2, i, i + 1), {2}); };  // [batch, boxes]
  Value *y1 = column(0), *x1 = column(1), *y2 = column(2), *x2 = column(3);
  const bool by_center = n.integer_or("center_point_box", 0) != 0;
  if (by_center) {
    // x, y of the center, width, height.
    Value *cx = column(0), *cy = column(1), *w = n.mul(column(2), 0.5), *h = n.mul(column(3), 0.5);
    x1 = n.sub(cx, w), x2 = n.add(cx, w), y1 = n.sub(cy, h), y2 = n.add(cy, h);
  }
  // Corners come in any order. A box with a negative width or height overlaps none.
  Value *top = y1, *bottom = y2, *left = x1, *right = x2;
  if (!by_center) {
    top = n.binary("minimum", y1, y2), bottom = n.binary("maximum", y1, y2);
    left = n.binary("minimum", x1, x2), right = n.binary("maximum", x1, x2);
  }
  Value* area = n.mul(n.sub(bottom, top), n.sub(right, left));
  const auto rows = [&](Value* v) { return n.expand_dims(v, {2}); };
  const auto columns = [&](Value* v) { return n.expand_dims(v, {1}); };
  const auto span = [&](Value* low, Value* high) {
    return n.unary("relu",
                   n.sub(n.binary("minimum", rows(high), columns(high)), n.binary("maximum", rows(low), columns(low))));
  };
  Value* shared = n.mul(span(top, bottom), span(left, right));
  Value* all = n.sub(n.add(rows(area), columns(area)), shared);
  Value* safe = n.select(n.binary("greater", all, n.scalar(0, all)), n.div(shared, all), n.mul(shared, 0.0));
  Value* overlaps = n.cast(n.binary("greater", safe, n.scalar(overlap, safe)), DType::fp32);  // [batch, boxes, boxes]
  constexpr double lowest = -3e38;
  Value* live = n.cast(scores, DType::fp32);
  if (filters) live = n.select(n.binary("greater", live, n.scalar(least, live)), live, n.scalar(lowest, live));
  std::vector<Value*> chosen, valid;
  for (int64_t k = 0; k < limit; ++k) {
    Value* best = n.op("reduce_argmax", {{"x", live}, {"axis", 2}, {"keep_dims", false}});  // [batch, classes]
    Value* top_score = n.reduce("reduce_max", live, {2}, false);
    chosen.push_back(best);
    valid.push_back(n.binary("greater", top_score, n.scalar(lowest / 2, top_score)));
    if (k + 1 == limit) break;
    Value* hot = n.op("one_hot", {{"indices", best},
                                  {"one_hot_vector_size", static_cast<int>(count)},
                                  {"axis", 2},
                                  {"on_value", 1.f},
                                  {"off_value", 0.f}});
    Value* gone = n.binary("maximum", hot, n.matmul(hot, overlaps));
    live = n.select(n.binary("greater", gone, n.scalar(0.5, gone)), n.scalar(lowest, live), live);
  }
  Value* picks = n.op("stack", {NamedArg("values", chosen), {"axis", 2}});  // [batch, classes, limit]
  Value* kept = n.op("stack", {NamedArg("values", valid), {"axis", 2}});
  Value* where = n.op("non_zero", {{"x", n.cast(kept, DType::int32)}});  // [results, 3]
  Value* box = n.op("gather_nd", {{"x", picks}, {"indices", where}});
  n.set(0, n.concat({n.slice(where, 1, 0, 2), n.expand_dims(box, {1})}, 1), DataType::int64);
}

constexpr OperatorImport kDetectionOperators[] = {{"NonMaxSuppression", non_max_suppression}};

}  // namespace

std::span<const OperatorImport> operators_detection() { return kDetectionOperators; }

}  // namespace moka::import::onnx
