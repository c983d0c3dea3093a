#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "moka/description.h"
#include "moka/error.h"

namespace moka {

/// Core ML's MLModelStructure: the parts of a model as its file has them, constants included. One of `functions`,
/// `layers` and `models` is filled; none for models that are neither programs, neural networks nor pipelines.
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
    int depth = 0;             ///< in branches and loops, whose layers follow the one that holds them
    std::string custom_class;  ///< of a custom layer
  };
  /// An array that the file holds, without strings and single numbers that are written inline.
  struct Weight {
    std::string name, type;  ///< of the value, or "layer.field"; type in MIL text
    std::string storage;     ///< "file", "inline"; of quantized layers "inline palette" or "inline linear"
    uint64_t bytes = 0;      ///< as stored
    std::string function;    ///< of a program
    std::string path;        ///< of "file": the weights file, as the model names it
    uint64_t offset = 0;     ///< of its record in that file
    bool available = true;   ///< false: the weights file is missing or damaged
  };
  std::string type;  ///< as ModelDescription::type
  std::vector<Function> functions;
  std::vector<Layer> layers;
  struct Part;
  std::vector<Part> models;  ///< of a pipeline
  std::vector<Weight> weights;
  std::vector<std::pair<std::string, std::string>> facts;  ///< of other models: "trees" and "150"
  std::vector<std::string> faults;                         ///< what could not be read, and why
};

struct ModelStructure::Part {
  std::string name;
  ModelStructure structure;
};

/// What a model's file says about itself.
struct ModelOutline {
  ModelDescription description;
  ModelStructure structure;
  std::vector<std::string> faults;  ///< of the description: features that could not be read
};

}  // namespace moka
