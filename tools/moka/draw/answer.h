// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "draw/draw.h"
#include "input.h"
#include "io/picture.h"
#include "io/resize.h"
#include "moka/model.h"
#include "outputs.h"

namespace moka::cli {

/// The outputs of one prediction as a picture of 4 channels.
struct Drawing {
  io::Picture picture;
  std::string what;                ///< "3 boxes"
  std::vector<std::string> found;  ///< boxes and classes in words: "dog 92%"
  size_t row = 0;                  ///< of a batch with pictures, from 1; 0: there is no batch
};
/// Draws the outputs of one prediction, or of a batch: into the picture or over the sound that was given, or a table as
/// plots. A batch with pictures gives one for each row. Throws UsageError when no output can be drawn, IoError.
std::vector<Drawing> drawings_of(const Model& model, const InputOptions& options, const Inputs& inputs,
                                 const std::vector<Features>& outputs);
/// Writes PNG; the drawings of a batch with pictures to NAME-1.png, NAME-2.png, ... Returns the files' paths. Throws
/// UsageError, Exception, IoError.
std::vector<std::string> write_drawings(const std::string& path, const std::vector<Drawing>& drawings,
                                        const Outputs& to);

/// `picture`: what the image input was made from, with `fit`; null to draw on the model's image. nullopt: no output can
/// be drawn.
std::optional<Drawing> drawing_of(const ModelDescription& model, const FunctionDescription& function,
                                  const Features& inputs, const Features& outputs, const io::Picture* picture,
                                  io::Fit fit);
/// Its picture. Throws UsageError when no output can be drawn.
io::Picture drawn(const ModelDescription& model, const FunctionDescription& function, const Features& inputs,
                  const Features& outputs, const io::Picture* picture, io::Fit fit);

/// Where a model's image of width x height lies in the picture that it was made from.
View view_of(const io::Picture& picture, int64_t width, int64_t height, io::Fit fit);

}  // namespace moka::cli
