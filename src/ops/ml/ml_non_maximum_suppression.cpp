// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/common/ml.h"
#include "ops/common/sorting.h"

namespace moka::ops {
namespace {

struct Settings {
  double iou, confidence;
  bool per_class;
  int64_t least, most;
};

/// The threshold, or its default if the value is NaN or absent.
double threshold(const OpCall& call, std::string_view param, std::string_view default_param) {
  double v = call.has(param) ? load_f64(*call.value(param), 0) : NAN;
  return v == v ? v : load_f64(*call.value(default_param), 0);
}

double overlap(const TensorView& b, int64_t i, int64_t j) {
  double area = 1, total = 0;
  for (int axis = 0; axis < 2; ++axis) {
    double ci = load_f64(b, i * 4 + axis), cj = load_f64(b, j * 4 + axis);
    double si = load_f64(b, i * 4 + 2 + axis), sj = load_f64(b, j * 4 + 2 + axis);
    area *= std::max(0.0, std::min(ci + si / 2, cj + sj / 2) - std::max(ci - si / 2, cj - sj / 2));
  }
  for (int64_t k : {i, j}) total += load_f64(b, k * 4 + 2) * load_f64(b, k * 4 + 3);
  return total - area > 0 ? area / (total - area) : 0;
}

/// The rows to keep, best first.
std::vector<int64_t> select(const TensorView& boxes, const TensorView& scores, const Settings& s) {
  int64_t n = scores.shape[0], classes = scores.shape[1];
  std::vector<double> best(static_cast<size_t>(n));
  std::vector<int64_t> label(static_cast<size_t>(n)), order, kept;
  std::vector<double> row(static_cast<size_t>(classes));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < classes; ++c) row[static_cast<size_t>(c)] = load_f64(scores, i * classes + c);
    const int64_t at = index_of_largest(row.data(), classes);
    const double top = row[static_cast<size_t>(at)];
    best[static_cast<size_t>(i)] = top;
    label[static_cast<size_t>(i)] = at;
    if (top >= s.confidence) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return best[static_cast<size_t>(a)] > best[static_cast<size_t>(b)]; });
  for (int64_t i : order) {
    if (s.most >= 0 && static_cast<int64_t>(kept.size()) >= s.most) break;
    bool suppressed = false;
    for (int64_t k : kept) {
      if (s.per_class && label[static_cast<size_t>(k)] != label[static_cast<size_t>(i)]) continue;
      if ((suppressed = overlap(boxes, i, k) > s.iou)) break;
    }
    if (!suppressed) kept.push_back(i);
  }
  return kept;
}

Settings settings(const OpCall& call) {
  return {threshold(call, "iou_threshold", "default_iou_threshold"),
          threshold(call, "confidence_threshold", "default_confidence_threshold"),
          load_i64(*call.value("per_class"), 0) != 0, load_i64(*call.value("min_boxes"), 0),
          load_i64(*call.value("max_boxes"), 0)};
}

Result<std::vector<Type>> infer_ml_non_maximum_suppression(const OpCall& call) {
  const Type& boxes = call.type("coordinates");
  const Type& scores = call.type("confidence");
  DType t = boxes.dtype();
  bool known = call.is_known("coordinates") && call.is_known("confidence");
  for (const char* p : {"iou_threshold", "confidence_threshold"}) {
    if (!call.has(p)) continue;
    MOKA_TRY(ml::check_count(call, p, 1));
    known = known && call.is_known(p);
  }
  for (const char* p : {"default_iou_threshold", "default_confidence_threshold"}) MOKA_TRY(call.number(p));
  MOKA_TRY(call.flag("per_class"));
  int64_t least = MOKA_TRY(call.integer("min_boxes"));
  int64_t most = MOKA_TRY(call.integer("max_boxes"));
  if (least < 0 || (most >= 0 && most < least) || least > (int64_t{1} << 24))
    return call.error("min_boxes", "0 to max_boxes, at most 2^24", cat(least));
  if (!boxes.is_ranked() || !scores.is_ranked())
    return std::vector<Type>{Type::unranked(t), Type::unranked(scores.dtype())};
  if (boxes.rank() != 2 || (boxes.shape()[1] >= 0 && boxes.shape()[1] != 4))
    return call.error("coordinates", "[N, 4]", cat(boxes));
  if (scores.rank() != 2 || scores.shape()[1] == 0) return call.error("confidence", "[N, classes]", cat(scores));
  int64_t n = boxes.shape()[0], m = scores.shape()[0];
  if (n >= 0 && m >= 0 && n != m) return call.error("confidence", cat(n, " rows"), cat(m));
  int64_t rows = kAnyDim;
  if (least == most)
    rows = least;
  else if (known)
    rows = std::max(least, static_cast<int64_t>(
                               select(*call.value("coordinates"), *call.value("confidence"), settings(call)).size()));
  return std::vector<Type>{Type::tensor(t, Shape{rows, 4}),
                           Type::tensor(scores.dtype(), Shape{rows, scores.shape()[1]})};
}

Status ml_non_maximum_suppression_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView* in[] = {&call.in("coordinates"), &call.in("confidence")};
  std::vector<int64_t> kept = select(*in[0], *in[1], settings(call));
  for (size_t o = 0; o < 2; ++o) {
    int64_t columns = in[o]->shape[1];
    for (int64_t r = 0; r < out[o].shape[0]; ++r)
      for (int64_t c = 0; c < columns; ++c)
        if (r < static_cast<int64_t>(kept.size()))
          copy_element(out[o], r * columns + c, *in[o], kept[static_cast<size_t>(r)] * columns + c);
        else
          store_f64(out[o], r * columns + c, 0);
  }
  return {};
}

}  // namespace

OpDef define_ml_non_maximum_suppression() {
  return ml::define(
             "ml_non_maximum_suppression",
             "Boxes (center x, center y, width, height) and their class confidences without those below the confidence "
             "threshold or overlapping a better one by more than the IoU threshold; best first, padded with zero rows "
             "to "
             "min_boxes, at most max_boxes unless that is negative. A threshold that is NaN or absent takes its "
             "default.")
      .in("coordinates", kFloats)
      .in("confidence", kFloats)
      .in("iou_threshold", ml::kNumeric)
      .optional()
      .in("confidence_threshold", ml::kNumeric)
      .optional()
      .constant("default_iou_threshold", ml::kF64)
      .constant("default_confidence_threshold", ml::kF64)
      .constant("per_class", kBool)
      .constant("min_boxes", ml::kI64)
      .constant("max_boxes", ml::kI64)
      .infer(infer_ml_non_maximum_suppression)
      .reference(ml_non_maximum_suppression_reference)
      .build();
}

}  // namespace moka::ops
