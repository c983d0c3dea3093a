// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "json.h"
#include "moka/files.h"
#include "moka/model.h"

namespace moka::cli {

/// The inputs of a request.
struct GivenInputs {
  Features features;
  std::optional<Image> picture;  ///< the file of the image input, not larger than a page shows
  Json notes = Json::array();    ///< on how files were used
};

/// Inputs by name: {"text": "3.5"}, {"file": base64, "name": "street.jpg"} or {"random": true}, for an array also with
/// {"shape": [1, 3, 64, 64]}. Files are read as `--input NAME=@FILE` reads them. Throws UsageError, IoError.
GivenInputs inputs_of(const Model& model, const Json& inputs);

/// Predicts once: {"seconds", "notes", "outputs": [...], "drawing"}, each output in the form that the page shows.
/// "drawing" is what `moka predict --draw` draws, as {"png", "width", "height", "what", "found"}; absent when no output
/// can be drawn.
Json answer_of(const Model& model, const Json& inputs);

/// A value as the page shows it: "form" is "number", "text", "classes", "list", "image" or "array". Images are PNG and
/// "data" of arrays is little-endian float32, both in base64. "data" ends after 65536 elements. Arrays with planes have
/// "maps" instead: {"png", "width", "height", "planes", "shown"}.
Json shown_value(const FeatureValue& value);

/// {"png", "width", "height"}.
Json png_json(const Image& image);

}  // namespace moka::cli
