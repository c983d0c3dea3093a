// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base64.h"
#include "format/model_file.h"
#include "import/importer.h"
#include "ir/evaluate.h"
#include "models_folder.h"

namespace moka::test {

using Json = nlohmann::json;

/// The files of tests/golden/<folder>, by name without extension.
std::map<std::string, Json> golden(const std::string& folder);

struct Network {
  std::unique_ptr<ir::Function> function;
  std::vector<std::string> outputs;
};
/// Imports a neural network into a function whose inputs have these shapes, whatever its description says.
Result<Network> import_network(const format::ModelFile& file, const std::map<std::string, ir::Shape>& shapes);
/// The same for inputs of these types, whose sizes or ranks may be unknown.
Result<Network> import_network(const format::ModelFile& file, const std::map<std::string, ir::Type>& types);

/// Predicts by the reference kernels.
Result<std::map<std::string, ir::RuntimeValue>> run(const Network& network,
                                                    const std::map<std::string, ir::Tensor>& inputs);

/// Uniform fp32 numbers, as `draw` of tests/golden/nn_truth.py makes them.
ir::Tensor draw(uint64_t seed, const ir::Shape& shape, double low, double high);
ir::Shape shape_of(const Json& list);

}  // namespace moka::test
