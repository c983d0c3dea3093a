// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <vector>

#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

/// Since iOS17 boxes are along the last axis, score_threshold and the number of boxes no longer exist, and an overlap
/// of exactly iou_threshold suppresses a box. coremltools' tests of the two versions show this difference.
struct Form {
  bool boxes_last;
  bool too_much(float overlap, float threshold) const {
    return overlap > threshold || (boxes_last && overlap == threshold && overlap > 0);
  }
  int box_axis() const { return boxes_last ? 2 : 1; }
  int item_axis() const { return boxes_last ? 1 : 2; }
};

Result<std::vector<Type>> infer_non_maximum_suppression(const OpCall& call, Form form) {
  const Type &boxes = call.type("boxes"), &scores = call.type("scores");
  const int64_t most = MOKA_TRY(dim_from_value(call, "max_boxes", MOKA_TRY(call.integer("max_boxes"))));
  MOKA_TRY(call.number("iou_threshold"));
  if (!form.boxes_last) MOKA_TRY(call.number("score_threshold"));
  MOKA_TRY(call.flag("per_class_suppression"));
  int64_t batch = kAnyDim, classes = kAnyDim, count = kAnyDim;
  for (const Type* t : {&boxes, &scores}) {
    if (!t->is_ranked()) continue;
    const bool is_boxes = t == &boxes;
    const std::string_view name = is_boxes ? "boxes" : "scores";
    if (t->rank() != 3) return call.error(name, "rank 3", cat(*t));
    const Shape& s = t->shape();
    if (!unify_dim(batch, s[0], batch)) return call.error(name, "the same batch as the other input", cat(*t));
    if (!unify_dim(count, s[form.box_axis()], count))
      return call.error(name, "as many boxes as the other input", cat(*t));
    if (is_boxes && s[form.item_axis()] >= 0 && s[form.item_axis()] != 4)
      return call.error("boxes", "4 coordinates", cat(*t));
    if (!is_boxes) classes = s[form.item_axis()];
  }
  auto shape = [&](int64_t items) { return form.boxes_last ? Shape{batch, items, most} : Shape{batch, most, items}; };
  std::vector<Type> out = MOKA_TRY(tensor_result(call, boxes.dtype(), shape(4)));
  out.push_back(MOKA_TRY(tensor_result(call, scores.dtype(), shape(classes)))[0]);
  out.push_back(Type::tensor(DType::int32, {batch, most}));
  if (!form.boxes_last) out.push_back(Type::tensor(DType::int32, {batch}));
  return out;
}

struct Candidate {
  float score;
  int64_t box, label;
  float x0, y0, x1, y1, area;
};

float overlap(const Candidate& a, const Candidate& b) {
  if (!(a.area > 0) || !(b.area > 0)) return 0;
  const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (!(w > 0) || !(h > 0)) return 0;
  return w * h / (a.area + b.area - w * h);
}

Status non_maximum_suppression_reference(const OpCall& call, std::span<const TensorView> out, Form form) {
  const TensorView &boxes = call.in("boxes"), &scores = call.in("scores");
  const auto threshold = static_cast<float>(MOKA_TRY(call.number("iou_threshold")));
  const bool per_class = MOKA_TRY(call.flag("per_class_suppression"));
  const auto least = form.boxes_last ? 0.0f : static_cast<float>(MOKA_TRY(call.number("score_threshold")));
  const int64_t batch = scores.shape[0], count = scores.shape[form.box_axis()],
                classes = scores.shape[form.item_axis()];
  const int64_t most = out[2].shape[1];
  for (const TensorView& o : out) zero_elements(o, 0, o.count());
  for (int64_t i = 0; i < out[2].count(); i++) store_i64(out[2], i, -1);
  auto at = [&](int64_t b, int64_t box, int64_t item, int64_t items, int64_t boxes_in_all) {
    return form.boxes_last ? (b * items + item) * boxes_in_all + box : (b * boxes_in_all + box) * items + item;
  };
  std::vector<Candidate> found, kept;
  for (int64_t b = 0; b < batch; b++) {
    found.clear();
    kept.clear();
    for (int64_t i = 0; i < count; i++) {
      Candidate c{-std::numeric_limits<float>::infinity(), i, -1, 0, 0, 0, 0, 0};
      for (int64_t k = 0; k < classes; k++) {
        const auto s = static_cast<float>(load_f64(scores, at(b, i, k, classes, count)));
        if (s > c.score || (c.label < 0 && s == c.score)) {
          c.score = s;
          c.label = k;
        }
      }
      if (c.label < 0 || (!form.boxes_last && !(c.score > least))) continue;
      float v[4];
      for (int64_t k = 0; k < 4; k++) v[k] = static_cast<float>(load_f64(boxes, at(b, i, k, 4, count)));
      c.x0 = v[0] - 0.5f * v[2];
      c.x1 = v[0] + 0.5f * v[2];
      c.y0 = v[1] - 0.5f * v[3];
      c.y1 = v[1] + 0.5f * v[3];
      c.area = (c.x1 - c.x0) * (c.y1 - c.y0);
      found.push_back(c);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& o) { return a.score > o.score; });
    for (const Candidate& c : found) {
      if (static_cast<int64_t>(kept.size()) == most) break;
      const bool hidden = std::any_of(kept.begin(), kept.end(), [&](const Candidate& k) {
        return (!per_class || k.label == c.label) && form.too_much(overlap(k, c), threshold);
      });
      if (!hidden) kept.push_back(c);
    }
    for (size_t n = 0; n < kept.size(); n++) {
      const auto place = static_cast<int64_t>(n);
      const int64_t box = kept[n].box;
      for (int64_t k = 0; k < 4; k++) copy_element(out[0], at(b, place, k, 4, most), boxes, at(b, box, k, 4, count));
      for (int64_t k = 0; k < classes; k++)
        copy_element(out[1], at(b, place, k, classes, most), scores, at(b, box, k, classes, count));
      store_i64(out[2], b * most + place, box);
    }
    if (!form.boxes_last) store_i64(out[3], b, static_cast<int64_t>(kept.size()));
  }
  return {};
}

}  // namespace

OpDef define_non_maximum_suppression() {
  return OpBuilder("non_maximum_suppression",
                   "Keeps boxes (center x, y, width, height) in descending order of their best score unless they "
                   "overlap one kept before; "
                   "unused places hold zeros and index -1.")
      .type_var("T", kF16F32)
      .in("boxes", "T")
      .in("scores", "T")
      .constant("iou_threshold", "T")
      .constant("score_threshold", "T")
      .constant("max_boxes", kI32)
      .constant("per_class_suppression", kBool)
      .or_else(Tensor::boolean(false))
      .infer([](const OpCall& c) { return infer_non_maximum_suppression(c, {false}); })
      .reference([](const OpCall& c, std::span<const TensorView> out) {
        return non_maximum_suppression_reference(c, out, {false});
      })
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.params.erase(v.params.begin() + v.param_index("score_threshold"));
            v.infer = [](const OpCall& c) { return infer_non_maximum_suppression(c, {true}); };
            v.reference = [](const OpCall& c, std::span<const TensorView> out) {
              return non_maximum_suppression_reference(c, out, {true});
            };
          })
      .note(
          "A box is suppressed if its intersection over union with a better one kept is above iou_threshold, since "
          "iOS17 "
          "also if it equals it.",
          "coremltools' tests of iOS14 and iOS17, whose expected results differ in that")
      .note(
          "The order is by the best score of all classes; equal scores keep the order of boxes. per_class_suppression "
          "compares only boxes with the same best class.",
          "coremltools' reference in TestNonMaximumSuppression")
      .note("Scores must be above score_threshold. Unused places hold zeros and index -1.",
            "coremltools' TestNonMaximumSuppression")
      .build();
}

}  // namespace moka::ops
