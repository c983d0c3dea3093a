// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "linting/lint.h"

namespace moka::linting {
namespace {

constexpr double kMeans[] = {0.485, 0.456, 0.406};  ///< of ImageNet, in parts of 255

/// The value behind the operations that only scale and shift an image.
const ir::Value* preprocessed(const ir::Value* image, bool& is_changed) {
  for (const ir::Value* value = image;;) {
    if (value->users().size() != 1) return value;
    const ir::Op& op = *value->users()[0];
    if (op.output_count() != 1) return value;
    const std::string& type = op.type_name();
    const bool is_move = type == "cast" || type == "identity" || type == "expand_dims" || type == "transpose";
    bool is_affine = false;
    if (type == "mul" || type == "add" || type == "sub" || type == "real_div") {
      const ir::Value* other = op.input("x") == value ? op.input("y") : op.input("x");
      is_affine = other != nullptr && other->constant() != nullptr && op.input("x") != op.input("y");
    }
    if (type == "batch_norm") is_affine = true;
    if (!is_move && !is_affine) return value;
    is_changed |= is_affine;
    value = op.output();
  }
}

/// Whether the last shift is by the means of ImageNet, of pixels that are divided by the deviations as well.
bool shifts_by_means_alone(const ir::Value* value, const Interval& interval) {
  const ir::Op* op = value->producer();
  if (!is_op(op, "add") && !is_op(op, "sub")) return false;
  const double width = interval.high - interval.low;
  if (width < 3.5 || width > 5.5) return false;  // 1 / 0.229 and the like
  for (const char* side : {"x", "y"}) {
    const ir::Value* shift = op->input(side);
    if (shift == nullptr || shift->constant() == nullptr || shift->constant()->tensor.count() != 3) continue;
    const ir::TensorView view = shift->constant()->tensor.view();
    for (int i = 0; i < 3; ++i)
      if (std::abs(std::abs(ir::load_f64(view, i)) - kMeans[i]) > 2e-3) return false;
    return true;
  }
  return false;
}

void check_image(const FunctionView& view, const ir::Value& image, Report& report) {
  bool is_changed = false;
  const ir::Value* value = preprocessed(&image, is_changed);
  const Interval i = view.bounds->of(value);
  if (!is_changed || !i.is_bounded()) return;
  const double width = i.high - i.low;
  std::string reason;
  if (width > 1000)
    reason = "its pixels are multiplied to a very wide range";
  else if (width < 0.1)
    reason = "its pixels are divided to a very narrow range, as if it were done twice";
  else if (i.high <= 0)
    reason = "its pixels become negative, as if the bias were not scaled";
  else if (i.low > 0.5)
    reason = "its pixels stay far above 0, as if the bias had the wrong sign";
  else if (shifts_by_means_alone(value, i))
    reason = "its bias is ImageNet's mean, but not divided by the deviation as the pixels are";
  if (reason.empty()) return;
  report.add(Level::warning, cat("input '", image.name, "'"),
             {reason, cat("pixels 0 to 255 become ", range(i.low, i.high)), ""}, &view);
}

void check_image_scale(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions) {
    if (view.description == nullptr) continue;
    for (const import::FeatureDescription& f : view.description->inputs) {
      if (f.kind != import::FeatureKind::image || f.image.color == import::ColorSpace::grayscale_float16) continue;
      for (const auto& input : view.function->body().inputs())
        if (input->name == f.name) check_image(view, *input, report);
    }
  }
}

}  // namespace

Rule rule_image_scale() {
  return {"image-scale", Level::warning, "Scales and biases of images that give a range which networks do not expect",
          "Pixels times scale plus bias: for (p / 255 - mean) / std, scale is 1 / (255 std) and bias is -mean / std.",
          check_image_scale};
}

}  // namespace moka::linting
