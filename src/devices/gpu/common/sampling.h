// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/common.h"

/// Shared by the kernels that sample images and by those of their gradients.
namespace moka::devices::gpu {

/// The specialization constants of shaders/sample.glsl.
struct SampleConstants {
  bool linear;
  uint32_t padding, range;
  bool align;
};
/// nullopt: a parameter is not constant.
std::optional<SampleConstants> sample_constants(const MatchCall& m);

/// The specialization constants of shaders/boxes.glsl, and factors of a box's numbers.
struct BoxConstants {
  bool height_first, center;
  uint32_t sampling;
  float scale, row_scale, column_scale;
};
/// nullopt: a parameter is not constant.
std::optional<BoxConstants> box_constants(const MatchCall& m);
/// Why the numbers of the boxes' images are not known to be those of `images` images; empty: they are.
std::string refusal_of_images(const MatchCall& m, std::string_view param, int64_t images);

}  // namespace moka::devices::gpu
