// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/sampling.h"

#include "ops/common/sampling.h"

namespace moka::devices::gpu {

std::optional<SampleConstants> sample_constants(const MatchCall& m) {
  const auto sampling = m.call.text("sampling_mode"), padding = m.call.text("padding_mode"),
             range = m.call.text("coordinates_mode");
  const auto align = m.call.flag("align_corners");
  if (!sampling.ok() || !padding.ok() || !range.ok() || !align.ok()) return std::nullopt;
  const uint32_t outside = *padding == "constant"     ? SAMPLE_CONSTANT
                           : *padding == "border"     ? SAMPLE_BORDER
                           : *padding == "reflection" ? SAMPLE_REFLECTION
                                                      : SAMPLE_SYMMETRIC;
  const uint32_t from = *range == "unnormalized"                  ? SAMPLE_PIXELS
                        : *range == "normalized_minus_one_to_one" ? SAMPLE_MINUS_ONE_TO_ONE
                                                                  : SAMPLE_ZERO_TO_ONE;
  return SampleConstants{*sampling == "bilinear", outside, from, *align};
}

std::optional<BoxConstants> box_constants(const MatchCall& m) {
  const auto mode = m.call.text("box_coordinate_mode");
  const auto sampling = ops::sampling_of(m.call);
  const auto normalized = m.call.flag("normalized_coordinates");
  const auto scale = m.call.number("spatial_scale");
  if (!mode.ok() || !sampling.ok() || !normalized.ok() || !scale.ok()) return std::nullopt;
  const ir::Shape& x = m.call.shape("x");
  const auto last = [&](int64_t n) { return *normalized ? static_cast<float>(n - 1) : 1.0f; };
  return BoxConstants{mode->ends_with("HEIGHT_FIRST"),
                      mode->starts_with("CENTER"),
                      static_cast<uint32_t>(*sampling),
                      static_cast<float>(*scale),
                      last(x[2]),
                      last(x[3])};
}

std::string refusal_of_images(const MatchCall& m, std::string_view param, int64_t images) {
  const ir::TensorView* v = m.call.value(param);
  if (v == nullptr) return "numbers of images that are checked while running";
  for (int64_t n = 0; n < v->count(); n++)
    if (const int64_t at = ir::load_i64(*v, n); at < 0 || at >= images) return "a box of an image that does not exist";
  return {};
}

}  // namespace moka::devices::gpu
