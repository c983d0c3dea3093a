#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/program_facts.h"
#include "import/description.h"

/// metadata.json of a compiled model.
namespace moka::compiler {

/// The contents of metadata.json besides the description.
struct ModelFacts {
  std::string class_name;
  nlohmann::json model_type;  ///< {"name": "MLModelType_mlProgram"}, for pipelines with "structure"
  bool has_program = false;   ///< the model or one of a pipeline's is an ML program
  ProgramFacts program;       ///< of the default function; of a pipeline all programs
  std::vector<std::pair<std::string, ProgramFacts>> functions;  ///< where the description lists functions
  std::map<std::string, int64_t> layers;                        ///< of neural networks
  std::set<std::string> weights;                                ///< element types of neural networks' weights
};

/// The first versions of Apple's systems that run a model.
struct Systems {
  const char *ios, *macos, *tvos, *watchos, *visionos, *catalyst;
};
const Systems& systems_of(int specification_version);

/// The array with one object.
nlohmann::json metadata(const import::ModelDescription& description, const ModelFacts& facts);

}  // namespace moka::compiler
