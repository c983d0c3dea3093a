#pragma once

#include <string>
#include <utility>
#include <vector>

#include "moka/error.h"

namespace moka {

/// Core ML's MLModelStructure: what a model consists of, as its file says it, constants included. One of the three
/// lists is filled; none for models that are neither programs, neural networks nor pipelines.
struct ModelStructure {
  struct Operation;
  struct Block {
    std::vector<std::pair<std::string, std::string>> inputs;  ///< value, type in MIL text
    std::vector<Operation> operations;
    std::vector<std::string> outputs;  ///< values
  };
  struct Operation {
    std::string name, type;  ///< "conv_1", "conv"
    /// Parameter, and the values given to it; empty where the constant is written inline.
    std::vector<std::pair<std::string, std::vector<std::string>>> inputs;
    std::vector<std::pair<std::string, std::string>> outputs;  ///< value, type in MIL text
    std::vector<Block> blocks;
  };
  struct Function {
    std::string name, opset;
    Block body;
  };
  struct Layer {
    std::string name, type;  ///< Core ML's name of the layer: "innerProduct"
    std::vector<std::string> inputs, outputs;
  };
  std::string type;  ///< as ModelDescription::type
  std::vector<Function> functions;
  std::vector<Layer> layers;
  struct Part;
  std::vector<Part> models;  ///< of a pipeline
};

struct ModelStructure::Part {
  std::string name;
  ModelStructure structure;
};

}  // namespace moka
