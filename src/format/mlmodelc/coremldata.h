// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace moka::format {

/// The top-level coremldata.bin of a compiled model.
struct CoreMLData {
  uint32_t type = 0;         ///< field number in Model.Type
  uint64_t version[3] = {};  ///< the compiler's triple; informational
  std::string target;        ///< "generic", "spec" or a pipeline's list
  uint32_t spec_version = 0;
  Bytes spec;         ///< a whole Model message; set only for the target "spec"
  Bytes description;  ///< a ModelDescription message; set for every other target

  uint64_t stages = 0;                     ///< pipelines: number of models
  uint64_t functions = 0;                  ///< set for ML programs
  std::vector<std::string> outputs;        ///< neural networks: names of the network's outputs
  std::vector<std::string> string_labels;  ///< neural network classifiers; one of the two lists
  std::vector<int64_t> int64_labels;
  std::string probability_layer;  ///< neural network classifiers; may be empty

  bool is_neural_network() const { return type == 500 || type == 403 || type == 303; }
  bool is_program() const { return type == 502; }
  bool is_pipeline() const { return type >= 200 && type <= 202; }
};

/// Errors: malformed (names the part and the byte), unsupported (a model type without a known compiled form).
Result<CoreMLData> parse_coremldata(const Bytes& file);

/// Writes `data` in the form that parse_coremldata reads. Precondition: the target is "spec", or the type has a known
/// tail.
std::string write_coremldata(const CoreMLData& data);

}  // namespace moka::format
