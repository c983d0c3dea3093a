#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"

namespace moka::format {

/// The newest version of Core ML's specification that src/format/proto describes.
inline constexpr int newest_specification = 10;

/// The parts of a specification message ("Model" or "ModelDescription") that src/format/proto does not describe:
/// "description.metadata: field 207", "neuralNetwork.layers.slice: axis 9". Lists each once, in order, and at most
/// eight.
std::vector<std::string> unknown_fields(const Bytes& message, std::string_view type = "Model");

}  // namespace moka::format
