// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "format/model_file.h"
#include "import/outline.h"
#include "ir/tensor.h"
#include "ir/type.h"

namespace moka::proto {
class ImageFeatureType;
class Model;
namespace MILSpec {
class Program;
}
}  // namespace moka::proto

namespace moka::import {

/// Looks up where the weights of a model are stored. For each weights file, one fault gives the number of arrays that
/// cannot be read.
class WeightFiles {
 public:
  WeightFiles(const format::WeightStore& store, Outline& out) : store_(store), out_(out) {}
  ~WeightFiles();
  /// Adds a weight of the weights file `path`.
  void add(Outline::Weight weight);

 private:
  struct Missing {
    std::string reason;       ///< why the first of them cannot be read
    bool has_header = false;  ///< false: the file is absent or no weights file, and is not looked at again
    int64_t weights = 0;
  };
  const format::WeightStore& store_;
  Outline& out_;
  std::map<std::string, Missing> missing_;
};

/// Each function adds the contents of its kind of model.
void outline_program(const proto::MILSpec::Program& program, const format::ModelFile& file, Outline& out);
void outline_text(std::string_view text, const format::WeightStore& store, Outline& out);
void outline_network(const proto::Model& model, const format::ModelFile& file, Outline& out);
/// A compiled neural network, from model.espresso.net and model.espresso.weights.
void outline_espresso(const format::ModelFile& file, Outline& out);
/// The preprocessing of a neural network's inputs, from its specification or from the files of a compiled one.
void outline_preprocessing(const proto::Model& model, Outline& out);
void outline_transforms(const proto::Model& model, const format::ModelFile& file, Outline& out);
void outline_classic(const proto::Model& model, const format::ModelFile& file, Outline& out);

/// "ios15" for "CoreML5"; unknown opsets stay unchanged.
std::string opset_name(std::string_view opset);
/// A constant as text: "[1, 1]", "same", "0.001". Long lists are cut.
std::string constant_text(const ir::Constant& constant);
/// "tensor<fp16, [3]>" for a vector of `count` elements.
std::string vector_type(std::string_view element, uint64_t count);
/// The same for an array of that shape, if it has `count` elements or, because the last byte is filled, up to `spare`
/// less.
std::string array_type(std::string_view element, uint64_t count, const std::vector<int64_t>& shape, uint64_t spare = 0);
/// The order of an image's planes: "RGB", "BGR", "grayscale"; empty when it is not specified.
std::string channels_of(const proto::ImageFeatureType& image);
/// Whether the model is a network with layers in its specification.
bool has_layers(const proto::Model& model);
/// Whether a tensor of `count` elements that is written inline is listed as a weight. Strings and single numbers are
/// settings, but an array of one float may be a bias.
bool listed(const ir::Type& type, uint64_t count);

}  // namespace moka::import
