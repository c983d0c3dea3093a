// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "drawing/box.h"
#include "drawing/canvas.h"
#include "moka/description.h"
#include "moka/feature.h"

/// What the outputs of a prediction mean to a person: classes, boxes, key points, masks, maps, pictures. The model's
/// preview metadata (com.apple.coreml.model.preview.type and .parameters) decides first, then Ultralytics' metadata,
/// then the names and shapes of the outputs; docs/seeing.md lists the rules.
namespace moka::drawing {

struct ClassScore {
  std::string label;
  double probability = 0;
};

struct KeyPoint {
  double x = 0, y = 0;  ///< fractions of the model's image
  double confidence = 0;
};

/// One number for each cell of a grid over the input: a depth map, a heat map, a posteriorgram.
struct Map {
  std::string name;
  int64_t width = 0, height = 0;
  std::vector<float> values;
  double least = 0, most = 0;  ///< of the finite values
};

/// A class for each cell of a grid over the image.
struct Segments {
  std::string name;
  int64_t width = 0, height = 0;
  std::vector<uint32_t> classes;
  std::vector<std::string> labels;  ///< by class; may be shorter
  std::vector<Color> colors;        ///< by class; may be shorter
};

struct Preview {
  std::vector<ClassScore> classes;  ///< most probable first, at most five
  std::vector<Box> boxes;           ///< most confident first
  bool has_detector = false;        ///< the outputs are those of a detector, which may find nothing
  std::vector<KeyPoint> points;
  std::vector<Segments> segments;
  std::vector<Map> maps;
  std::vector<Image> images;

  bool empty() const;
};

/// `image`: size of the model's image input, 0 if it has none. Errors in metadata are ignored.
Preview preview_of(const Features& outputs, const ModelDescription& model, const FunctionDescription& function,
                   int64_t image_width, int64_t image_height);

}  // namespace moka::drawing
