#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "import/description.h"

namespace moka::format {
class ModelFile;
class WeightStore;
}  // namespace moka::format
namespace moka::proto {
class Model;
}

/// What a model file says about itself, read without importing it. One damaged part does not hide the rest: unknown
/// operations, layers and kinds of models are listed as the file has them, and a part that cannot be read becomes a
/// fault.
///
///   outline/outline.cpp   the model, its description, the stages of a pipeline
///   outline/program.cpp   ML programs, from messages
///   outline/text.cpp      ML programs, from MIL text
///   outline/network.cpp   neural networks, with their weights
///   outline/espresso.cpp  compiled neural networks
///   outline/classic.cpp   what all other kinds of models hold
namespace moka::import {

struct Outline {
  using Typed = std::pair<std::string, std::string>;  ///< a value and its type in MIL text
  struct Operation;
  struct Block {
    std::vector<Typed> inputs;
    std::vector<Operation> operations;
    std::vector<std::string> outputs;  ///< values
  };
  struct Operation {
    std::string name, type;
    /// Parameter, and the values given to it; empty where the constant is written inline.
    std::vector<std::pair<std::string, std::vector<std::string>>> inputs;
    std::vector<Typed> outputs;
    std::vector<Block> blocks;
  };
  struct Function {
    std::string name, opset;
    Block body;
  };
  /// A layer of a neural network. Those of branches and loops follow the layer that holds them, one level deeper.
  struct Layer {
    std::string name, type;  ///< type: Core ML's name, "innerProduct"
    std::vector<std::string> inputs, outputs;
    int depth = 0;
    std::string custom_class;  ///< of a custom layer
  };
  /// An array that the file holds.
  struct Weight {
    std::string name, type;  ///< type in MIL text
    std::string storage;     ///< "file", "inline", or "inline palette" and "inline linear" of quantized layers
    uint64_t bytes = 0;      ///< as stored
    std::string owner;       ///< the function, else empty
    std::string path;        ///< of "file": the weights file as the model names it
    uint64_t offset = 0;     ///< of its record in that file
    bool available = true;   ///< false: the file lacks it, and there is a fault that says so
  };
  struct Stage;

  std::string type;  ///< Core ML's name, or "unknown (field 4711)"
  std::vector<Function> functions;
  std::vector<Layer> layers;
  std::vector<Stage> stages;  ///< of a pipeline
  std::vector<Weight> weights;
  std::vector<Typed> facts;  ///< of the other kinds: {"trees", "150"}
  std::vector<std::string> faults;
};

struct Outline::Stage {
  std::string name;
  Outline outline;
};

/// The structure of a model. `file` may have been opened with OpenOptions::any_kind.
Outline outline(const format::ModelFile& file);
/// The same of a program in MIL text, whose weights are in `weights`.
Outline outline_of_text(std::string_view text, const format::WeightStore& weights);
/// The description of any model, without class labels where these cannot be read. Malformed parts are left out and
/// named in `faults`.
ModelDescription outline_description(const format::ModelFile& file, std::vector<std::string>& faults);
/// What a pipeline calls its models; may be fewer than there are, or empty.
std::vector<std::string> outline_names(const proto::Model& model);

}  // namespace moka::import
