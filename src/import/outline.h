#pragma once

#include <string>
#include <vector>

#include "format/model_file.h"

namespace moka::import {

/// A layer of a neural network as its file has it.
struct OutlineLayer {
  std::string name, type;  ///< type: Core ML's name, "innerProduct"
  std::vector<std::string> inputs, outputs;
};

/// The layers of a neural network, in order; empty for other models.
std::vector<OutlineLayer> outline_layers(const proto::Model& model);
/// What a pipeline calls its models; may be fewer than there are, or empty.
std::vector<std::string> outline_names(const proto::Model& model);

}  // namespace moka::import
