// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

constexpr double kUnit = 1.01;  ///< outputs of sigmoid and tanh

void check_image_output(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions) {
    if (view.description == nullptr) continue;
    const auto outputs = view.function->body().outputs();
    for (size_t i = 0; i < view.description->outputs.size() && i < outputs.size(); ++i) {
      const import::FeatureDescription& f = view.description->outputs[i];
      if (f.kind != import::FeatureKind::image || f.image.color == import::ColorSpace::grayscale_float16) continue;
      const Interval bounds = view.bounds->of(outputs[i]);
      const Measured* m = measured(view.wide, outputs[i]);
      const bool is_known = bounds.is_bounded() && bounds.low >= -kUnit && bounds.high <= kUnit;
      const bool is_seen = m != nullptr && m->count > 0 && m->nan + m->infinite == 0 && m->magnitude() <= kUnit;
      if (!is_known && !is_seen) continue;
      report.add(Level::warning, cat("output '", f.name, "'"),
                 {"its numbers are not those of pixels, which go to 255, so the picture is black",
                  is_known ? cat("its values are ", range(bounds.low, bounds.high))
                           : cat("measured ", range(m->least, m->greatest)),
                  ""},
                 &view);
    }
  }
}

}  // namespace

Rule rule_image_output() {
  return {"image-output", Level::warning, "Image outputs between -1 and 1, which are black",
          "Multiply by 255, or by 127.5 after adding 1, in the model: moka edit, or before converting.",
          check_image_output};
}

}  // namespace moka::linting
