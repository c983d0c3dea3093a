// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/program_facts.h"
#include "import/description.h"

/// Writes metadata.json of a compiled model.
namespace moka::compiler {

/// The content of metadata.json besides the description.
struct ModelFacts {
  std::string class_name;
  nlohmann::json model_type;  ///< {"name": "MLModelType_mlProgram"}, with "structure" for pipelines
  bool has_program = false;   ///< the model, or a model of the pipeline, is an ML program
  ProgramFacts program;       ///< facts of the default function, or of all programs in a pipeline
  std::vector<std::pair<std::string, ProgramFacts>> functions;  ///< set when the description lists functions
  std::map<std::string, int64_t> layers;                        ///< layers of neural networks
  std::set<std::string> weights;                                ///< element types of the weights of neural networks
};

/// The first versions of Apple's systems that can run a model.
struct Systems {
  const char *ios, *macos, *tvos, *watchos, *visionos, *catalyst;
};
const Systems& systems_of(int specification_version);

/// An array with a single object.
nlohmann::json metadata(const import::ModelDescription& description, const ModelFacts& facts);

}  // namespace moka::compiler
