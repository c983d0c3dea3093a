// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "import/description.h"
#include "import/neuralnetwork/blob_sizes.h"

namespace moka::format {
class ModelFile;
class WeightStore;
}  // namespace moka::format
namespace moka::proto {
class Model;
}

/// What a model file says about itself, read without importing it. A damaged part does not hide the rest: unknown
/// operations, layers and kinds of models are listed as the file has them, and a part that cannot be read becomes a
/// fault.
///
///   outline/outline.cpp   the model, its description, the stages of a pipeline
///   outline/program.cpp   ML programs, from messages
///   outline/text.cpp      ML programs, from MIL text
///   outline/network.cpp   neural networks, with their weights
///   outline/espresso.cpp  compiled neural networks
///   outline/classic.cpp   the contents of all other kinds of models
///   outline/constant_text.cpp  constants as text
///   outline/window_*.cpp  kernels, strides, paddings and channels
///   outline/image_operations.cpp  what the operations of a program do to images first
///   outline/preprocessing.cpp  what happens to images before the first layer
///   outline/sizes.cpp     sizes of values at the default sizes of the inputs
namespace moka::import {

struct Outline {
  /// What moves over an input and which channels it connects. Empty or 0: the layer has none; -1: not known.
  struct Window {
    std::vector<int64_t> kernel, stride, dilation;  ///< by spatial dimension: height and width
    std::vector<int64_t> padding;                   ///< before and after each of them
    /// "valid", "same", "same_lower", "custom" (`padding` says how much), "includeLastPixel", "global"; of paddings
    /// "constant", "reflection", "replication" and the modes of MIL.
    std::string padding_mode;
    int64_t input_channels = 0, output_channels = 0, groups = 0;
  };
  /// What happens to an input before the first layer: pixel * scale + bias, of its channel, or the difference from a
  /// mean image.
  struct Preprocessing {
    std::string input;
    std::string function;          ///< of a program
    std::string stored;            ///< "scaler", "mean image", or "operations" of a program
    std::string channels;          ///< order of the planes: "RGB", "BGR", "grayscale"; empty for an array
    std::vector<double> scale{1};  ///< of each channel in that order, or one for all
    std::vector<double> bias;      ///< likewise; empty: none
    int64_t mean_image = 0;        ///< count of its numbers
  };
  using Typed = std::pair<std::string, std::string>;  ///< a value and its type as MIL text
  struct Operation;
  struct Block {
    std::vector<Typed> inputs;
    std::vector<Operation> operations;
    std::vector<std::string> outputs;  ///< names of the values
  };
  struct Operation {
    std::string name, type;
    /// Parameters with their arguments; a constant that is written inline has no arguments.
    std::vector<std::pair<std::string, std::vector<std::string>>> inputs;
    std::vector<Typed> outputs;
    std::vector<Block> blocks;
    /// Constants written inline: parameter and value as text. Long lists are cut.
    std::vector<std::pair<std::string, std::string>> values;
    Window window{};
  };
  struct Function {
    std::string name, opset;
    Block body;
  };
  /// A layer of a neural network. The layers of a branch or loop follow the layer that holds them, one level deeper.
  struct Layer {
    std::string name, type;  ///< type: Core ML's name, "innerProduct"
    std::vector<std::string> inputs, outputs;
    int depth = 0;
    std::string custom_class;  ///< class name of a custom layer
    /// Settings by the names of the specification: {"kernelSize", "[3, 3]"}. Weights are not among them.
    std::vector<std::pair<std::string, std::string>> settings;
    Window window{};
    std::vector<size_t> weights{};  ///< indices in Outline::weights
  };
  /// An array that the file holds.
  struct Weight {
    std::string name, type;  ///< type as MIL text
    std::string storage;     ///< "file" or "inline"; quantized layers: "inline palette" or "inline linear"
    uint64_t bytes = 0;      ///< stored size
    std::string owner;       ///< the function that holds it; empty if there is none
    std::string path;        ///< weights file as the model names it, when storage is "file"
    uint64_t offset = 0;     ///< offset of the record in that file
    bool available = true;   ///< false: the file lacks it; a fault says so
    Bytes data;              ///< the stored elements; empty when they cannot be read
    /// Bits of one element of a neural network's quantized weights, which start at the most significant bit of each
    /// byte. 0: other weights, which start at the least significant bit.
    int high_first_bits = 0;
  };
  /// A node of a tree ensemble. A leaf has values and no test.
  struct TreeNode {
    uint64_t tree = 0, id = 0, on_true = 0, on_false = 0;
    std::string test;                                   ///< "feature 3 <= 0.5"; empty for a leaf
    std::vector<std::pair<uint64_t, double>> values{};  ///< that a leaf adds to a dimension of the result
  };
  struct Stage;

  std::string type;  ///< Core ML's name, or "unknown (field 4711)"
  std::vector<Function> functions;
  std::vector<Layer> layers;
  std::vector<Stage> stages;                 ///< models of a pipeline
  std::vector<std::string> inputs, outputs;  ///< names of the model's features
  std::vector<Weight> weights;
  std::vector<Typed> facts;          ///< properties of other kinds of models: {"trees", "150"}
  std::vector<TreeNode> tree_nodes;  ///< of a tree ensemble, in the order of the file
  std::vector<Preprocessing> preprocessing;
  std::vector<std::string> faults;
};

struct Outline::Stage {
  std::string name;
  Outline outline;
};

/// The structure of a model. `file` may have been opened with OpenOptions::any_kind.
Outline outline(const format::ModelFile& file);
/// The sizes of what the layers of a network read and write, for inputs of the default sizes; empty for other models.
/// `outline`: that of the model that the indices `models` lead to, from stage to stage of pipelines.
std::vector<nn::LayerSizes> outline_sizes(const format::ModelFile& file, const Outline& outline,
                                          std::span<const size_t> models);
/// The types of the values of a program with flexible inputs, by name, where these have their default sizes. Empty: no
/// input is flexible, or the program cannot be imported.
std::map<std::string, std::string> outline_types(const format::ModelFile& file, std::span<const size_t> models,
                                                 const std::string& function);
/// The structure of a program in MIL text, whose weights are in `weights`.
Outline outline_of_text(std::string_view text, const format::WeightStore& weights);
/// The description of any model, without class labels when these cannot be read. Skips malformed parts and names them
/// in `faults`.
ModelDescription outline_description(const format::ModelFile& file, std::vector<std::string>& faults);
/// The names that a pipeline gives its models; may be empty or have fewer entries than there are models.
std::vector<std::string> outline_names(const proto::Model& model);

}  // namespace moka::import
