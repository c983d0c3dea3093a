// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "moka/description.h"
#include "moka/feature.h"
#include "moka/files.h"

/// Answers of models as pictures. All of them are rgba8 and opaque; encode_png writes them (moka/files.h). Letters are
/// strokes of a built-in font, so that no font has to be installed; characters beyond ASCII show as '?'.
namespace moka {

struct ArrayFacts;

/// The outputs of one prediction as a picture.
struct Drawing {
  Image image;
  std::string what;                ///< in short: "3 boxes", "no boxes", "5 classes"
  std::vector<std::string> found;  ///< boxes and classes, most certain first: "dog 92.0%"
};

/// Draws what the outputs of one prediction mean: boxes, masks and key points in the image input, maps over the
/// spectrogram of a sound, bars of classes. The model's preview metadata decides first, then Ultralytics' metadata,
/// then the names and shapes of the outputs; docs/seeing.md lists the rules. Small images are enlarged, so that labels
/// can be read. nullopt: no output can be drawn.
///
/// `inputs`: what `outputs` were predicted from. `picture`: what the image input was made from, with `fit` and
/// `region`; null draws on the input itself.
MOKA_EXPORT std::optional<Drawing> draw_outputs(const ModelDescription& model, const FunctionDescription& function,
                                                const Features& inputs, const Features& outputs,
                                                const Image* picture = nullptr, ImageFit fit = ImageFit::scale_fill,
                                                const ImageRegion& region = {});

/// The outputs of several predictions as plots over their order: a line for each output of one number, and for each of
/// up to eight classes. nullopt: there are no numbers.
MOKA_EXPORT std::optional<Image> draw_rows(std::span<const Features> outputs, const FunctionDescription& function);

/// The planes of an array as heat maps.
struct ArrayDrawing {
  Image image;
  int64_t planes = 0;             ///< of the array
  int64_t shown = 0;              ///< the first so many are in the image
  int64_t rows = 0, columns = 0;  ///< of a plane
};
/// Arrays of at least 64 elements in the last two dimensions, without those of size 1, have maps: one for each plane,
/// numbered, in colors from dark violet over green to yellow for the array's least to its greatest value. Elements that
/// are not finite are red. `facts`: those of the array (moka/difference.h). nullopt: there is no plane worth a map.
MOKA_EXPORT std::optional<ArrayDrawing> draw_array(const MultiArray& array, const ArrayFacts& facts);

struct Color {
  uint8_t r = 0, g = 0, b = 0, a = 255;
  bool operator==(const Color&) const = default;
};

/// Lines and discs over two axes.
struct Plot {
  struct Mark {
    double at = 0;
    std::string text;
  };
  struct Series {
    std::string name;
    Color color;
    std::vector<std::pair<double, double>> points;  ///< (x, y)
    bool is_line = false;                           ///< else discs
    double size = 4;                                ///< thickness of the line, or radius of the discs, in pixels
  };
  double left = 0, right = 1, bottom = 0, top = 1;  ///< the part that is shown: the first differs from the second
  std::vector<Mark> x_marks, y_marks;
  std::vector<Series> series;
};
/// 960 x 540 pixels: marks at the axes, the names of the series above them.
MOKA_EXPORT Image draw_plot(const Plot& plot);

}  // namespace moka
