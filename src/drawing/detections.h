// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "drawing/box.h"
#include "moka/description.h"
#include "moka/feature.h"

namespace moka::drawing {

/// The boxes of an object detector. It knows three forms of outputs:
///   - Core ML's non-maximum suppression: coordinates [N, 4] as center and size in fractions, confidence [N, classes];
///   - Ultralytics without suppression: [1, 4 + classes, N] as center and size in pixels. Boxes with a confidence of at
///     least 0.25 are suppressed here where they overlap by more than 0.45;
///   - Ultralytics with suppression: [1, N, 6] as corners in pixels, confidence and class.
/// Adds the names of the outputs that it has read to `used`.
std::vector<Box> detections_of(const Features& outputs, const ModelDescription& model, int64_t image_width,
                               int64_t image_height, std::vector<std::string>& used);

/// Class names in user-defined metadata: "classes" (separated by commas) or "names" (Python's or JSON's dictionary or
/// list).
std::vector<std::string> names_in_metadata(const ModelDescription& model);

}  // namespace moka::drawing
