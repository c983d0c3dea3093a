// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "moka/description.h"
#include "moka/error.h"

namespace moka {

/// Core ML's MLModelStructure: the parts of a model as its file has them, including constants. One of `functions`,
/// `layers` and `models` is filled; none is for models that are neither programs, neural networks nor pipelines.
struct ModelStructure {
  /// What a convolution or pool moves over its input, and the channels that a layer with weights connects. Empty or 0:
  /// there are none; -1: not known.
  struct Window {
    std::vector<int64_t> kernel, stride, dilation;  ///< by spatial dimension: height and width
    std::vector<int64_t> padding;                   ///< before and after each of these dimensions
    /// "valid", "same", "same_lower", "custom" (`padding` says how much), "includeLastPixel", "global"; of layers that
    /// only pad "constant", "reflection", "replication" and the modes of MIL.
    std::string padding_mode;
    int64_t input_channels = 0, output_channels = 0, groups = 0;
  };
  /// What happens to an input before everything else: pixel * scale + bias, of its channel, or the difference from a
  /// mean image.
  struct Preprocessing {
    std::string input;
    std::string function;          ///< of a program
    std::string stored;            ///< "scaler" or "mean image" of a neural network, or "operations" of a program
    std::string channels;          ///< order of the planes: "RGB", "BGR", "grayscale"; empty for an array
    std::vector<double> scale{1};  ///< of each channel in that order, or one for all
    std::vector<double> bias;      ///< likewise; empty: none
    int64_t mean_image = 0;        ///< count of the mean image's numbers
  };
  struct Operation;
  struct Block {
    std::vector<std::pair<std::string, std::string>> inputs;  ///< value and its type as MIL text
    std::vector<Operation> operations;
    std::vector<std::string> outputs;  ///< names of the values
  };
  struct Operation {
    std::string name, type;  ///< "conv_1", "conv"
    /// Parameters with their arguments; a constant that is written inline has no arguments.
    std::vector<std::pair<std::string, std::vector<std::string>>> inputs;
    std::vector<std::pair<std::string, std::string>> outputs;  ///< value and its type as MIL text
    std::vector<Block> blocks;
    /// Constants written inline: parameter and value as text. Long lists are cut.
    std::vector<std::pair<std::string, std::string>> values;
    Window window;
  };
  struct Function {
    std::string name, opset;
    Block body;
  };
  struct Layer {
    std::string name, type;  ///< Core ML's name of the layer: "innerProduct"
    std::vector<std::string> inputs, outputs;
    int depth = 0;             ///< nesting depth; the layers of a branch or loop follow the layer that holds them
    std::string custom_class;  ///< class name of a custom layer
    /// Settings by the names of the specification: {"kernelSize", "[3, 3]"}. Weights are not among them.
    std::vector<std::pair<std::string, std::string>> settings;
    Window window;
    std::vector<size_t> weights;  ///< indices in ModelStructure::weights
  };
  /// An array in the file. Written inline, strings and single numbers are not listed, nor arrays of one number unless
  /// it is a float.
  struct Weight {
    std::string name, type;  ///< name of the value, or "layer.field"; type as MIL text
    std::string storage;     ///< "file" or "inline"; quantized layers: "inline palette" or "inline linear"
    uint64_t bytes = 0;      ///< stored size
    std::string function;    ///< function of a program that holds it
    std::string path;        ///< weights file as the model names it, when storage is "file"
    uint64_t offset = 0;     ///< offset of the record in that file
    bool available = true;   ///< false: the weights file is missing or damaged
  };
  std::string type;  ///< as ModelDescription::type
  std::vector<Function> functions;
  std::vector<Layer> layers;
  struct Part;
  std::vector<Part> models;                  ///< models of a pipeline
  std::vector<std::string> inputs, outputs;  ///< names of the model's features
  std::vector<Weight> weights;
  std::vector<Preprocessing> preprocessing;
  std::vector<std::pair<std::string, std::string>> facts;  ///< properties of other models: "trees" and "150"
  std::vector<std::string> faults;                         ///< parts that could not be read, and why
};

struct ModelStructure::Part {
  std::string name;
  ModelStructure structure;
};

/// The description and the structure in a model's file.
struct ModelOutline {
  ModelDescription description;
  ModelStructure structure;
  std::vector<std::string> faults;  ///< features of the description that could not be read
};

}  // namespace moka
