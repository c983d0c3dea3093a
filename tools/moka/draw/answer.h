// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "input.h"
#include "moka/drawing.h"
#include "moka/model.h"
#include "outputs.h"

namespace moka::cli {

/// A drawing of --draw.
struct NumberedDrawing {
  Drawing drawing;
  size_t row = 0;  ///< of a batch with pictures, from 1; 0: there is no batch
};
/// Draws the outputs of one prediction, or of a batch: into the picture or over the sound that was given, or a table as
/// plots. A batch with pictures gives one for each row. Throws UsageError when no output can be drawn, IoError.
std::vector<NumberedDrawing> drawings_of(const Model& model, const InputOptions& options, const Inputs& inputs,
                                         const std::vector<Features>& outputs);
/// Writes PNG; the drawings of a batch with pictures to NAME-1.png, NAME-2.png, ... Returns the files' paths. Throws
/// UsageError, Exception, IoError.
std::vector<std::string> write_drawings(const std::string& path, const std::vector<NumberedDrawing>& drawings,
                                        const Outputs& to);

}  // namespace moka::cli
