// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "drawing/draw.h"
#include "drawing/panels.h"
#include "moka/drawing.h"

namespace moka {
namespace drawing {
namespace {

/// Samples of a sound that are worth a spectrogram.
constexpr int64_t kLeastSamples = 1024;

/// The picture or the sound that the outputs are drawn onto.
struct Ground {
  int64_t image_width = 0, image_height = 0;  ///< of the model's image; 0: none
  Image picture;
  View view;
  std::vector<float> samples;
};

/// The picture or the sound among the inputs, as the model gets it.
Ground ground_of(const FunctionDescription& function, const Features& inputs) {
  Ground out;
  for (const FeatureDescription& input : function.inputs) {
    const FeatureValue* value = inputs.find(input.name);
    if (!value) continue;
    if (const auto* image = std::get_if<Image>(value)) {
      out.image_width = image->width;
      out.image_height = image->height;
      out.picture = *image;
      out.view = {0, 0, static_cast<double>(image->width), static_cast<double>(image->height)};
      return out;
    }
    if (const auto* buffer = std::get_if<PixelBuffer>(value)) {
      const Image fitted = image_value(input, *buffer);
      out.image_width = fitted.width;
      out.image_height = fitted.height;
      out.picture = image_of(*buffer, PixelFormat::rgba8);
      out.view = view_of(out.picture, fitted.width, fitted.height, buffer->fit, buffer->region);
      return out;
    }
    const auto* array = std::get_if<MultiArray>(value);
    if (!array || !out.samples.empty() || array->count() < kLeastSamples) continue;
    const auto& shape = array->shape();
    if (*std::max_element(shape.begin(), shape.end()) != array->count()) continue;
    for (int64_t i = 0; i < array->count(); ++i) out.samples.push_back(static_cast<float>(array->at(i)));
  }
  return out;
}

}  // namespace
}  // namespace drawing

std::optional<Drawing> draw_outputs(const ModelDescription& model, const FunctionDescription& function,
                                    const Features& inputs, const Features& outputs, const Image* picture, ImageFit fit,
                                    const ImageRegion& region) {
  using namespace drawing;
  Ground ground = ground_of(function, inputs);
  if (picture && ground.image_width > 0) {
    ground.picture = *picture;
    ground.view = view_of(*picture, ground.image_width, ground.image_height, fit, region);
  }
  const Preview preview = preview_of(outputs, model, function, ground.image_width, ground.image_height);
  const bool detects_nothing = preview.empty() && ground.image_width > 0 && preview.has_detector;
  if (preview.empty() && !detects_nothing) return std::nullopt;
  Drawing out;
  out.what = detects_nothing ? "no boxes" : summary_of(preview);
  for (const Box& box : preview.boxes) out.found.push_back(cat(box.label, " ", percent_text(box.confidence)));
  for (const ClassScore& c : preview.classes) out.found.push_back(cat(c.label, " ", percent_text(c.probability)));
  out.image = ground.image_width > 0    ? draw_on_picture(preview, ground.picture, ground.view)
              : !ground.samples.empty() ? draw_on_sound(preview, ground.samples)
                                        : draw_alone(preview);
  return out;
}

}  // namespace moka
