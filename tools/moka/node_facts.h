// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/table.h"
#include "json.h"
#include "model_facts.h"
#include "moka/inspection.h"

namespace moka::cli {

/// A weight as a listing shows it. `name`: that of ModelStructure::Weight, or the value that operations make of several
/// weights. `storage`: "float16", "palette of 4 bits", "linear 8 bits", ...
struct NodeWeight {
  std::string name, storage;
  ValueSize shape;
  int64_t parameters = 0;
  uint64_t bytes = 0;
};

/// What a listing says of an operation or layer besides its names.
struct NodeFacts {
  /// The sizes of computed values for inputs of the default sizes: "3 x 224 x 224" of a layer, "fp16 1 x 3" of an
  /// operation; "?" where nothing is known.
  std::vector<std::string> inputs, outputs;
  std::vector<ValueSize> input_sizes, output_sizes;
  std::vector<NodeWeight> weights;
  int64_t parameters = 0;
  uint64_t bytes = 0;
};

/// Reads the facts of the nodes of a function or network. `models` leads to it through pipelines.
class NodeReader {
 public:
  NodeReader(const Inspection& inspection, const ModelStructure& structure, const std::string& function,
             const std::vector<size_t>& models);
  NodeFacts facts(const Node& node) const;

 private:
  using Weight = ModelStructure::Weight;
  NodeFacts of_layer(const ModelStructure::Layer& layer) const;
  NodeFacts of_operation(const ModelStructure::Operation& operation) const;
  void add(const ModelStructure::Block& block);
  /// The weight that a constant, or an operation on constants alone, gives to a parameter.
  bool add_weight(const std::string& parameter, const std::string& value, NodeFacts& facts) const;
  void add_parts(const std::string& value, NodeWeight& weight, int depth) const;

  const ModelStructure& structure_;
  std::vector<LayerSizes> layer_sizes_;
  std::map<std::string, std::string> types_;
  std::map<std::string, const ModelStructure::Operation*> constants_;
  std::map<std::string, const Weight*> weights_;
};

/// "3 x 3, stride 2 x 2, same, 3 to 64 channels"; empty where there is no window.
std::string window_text(const ModelStructure::Window& window);
/// "64 x 3 x 7 x 7 float16, 64 float16".
std::string weights_text(const NodeFacts& facts);
/// "float16", "palette of 4 bits", "linear 8 bits".
std::string storage_text(const ModelStructure::Weight& weight);
/// {"name", "type", "depth", "inputs", "outputs", "inputSizes", "outputSizes", "weights", "parameters", "bytes", and
/// the window's fields}. Unknown sizes are null.
Json node_json(const Node& node, const NodeFacts& facts);

/// Layers or operations with their kinds, sizes and weights, for `moka compile --verbose`: as tables, one for each
/// model of a pipeline, or as {"layers"} or {"operations"}, {"parameters", "bytes"} and {"models"}.
std::string layer_report(const Inspection& inspection);
Json layer_report_json(const Inspection& inspection);

/// The function of a pipeline's model that the pipeline runs.
std::string function_of(const ModelStructure& structure);

/// A table of what happens to inputs before the first layer, also inside pipelines; empty: nothing does.
std::string preprocessing_text(const ModelStructure& structure);
/// [{"input", "stored", "channels", "scale", "bias"}] of one model.
Json preprocessing_json(const ModelStructure& structure);

}  // namespace moka::cli
