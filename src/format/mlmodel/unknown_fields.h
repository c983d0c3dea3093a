// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"

namespace moka::format {

/// The newest version of Core ML's specification that src/format/proto describes.
inline constexpr int newest_specification = 10;

/// The parts of a specification message that src/format/proto does not describe: "description.metadata: field 207",
/// "neuralNetwork.layers.slice: axis 9". Each list has an entry once, in order, and at most eight entries.
struct UnknownFields {
  std::vector<std::string> needed;   ///< may change what the model computes
  std::vector<std::string> ignored;  ///< inside metadata, training inputs, update parameters or a program's attributes
};

/// `type`: "Model" or "ModelDescription".
UnknownFields unknown_fields(const Bytes& message, std::string_view type = "Model");

}  // namespace moka::format
