// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "import/onnx/scope.h"

namespace moka::import::onnx {

/// The inputs and outputs of the graph as those of the program. Each element of a sequence is a feature.
class Interface {
 public:
  Interface(Scope& scope, Imported& out) : scope_(scope), context_(scope.context), out_(out) {}

  /// Refuses lengths of inputs that are not sequences, and absent inputs that are not optional.
  void check_options(std::span<const format::onnx::ValueInfo> inputs) const;
  void add_input(const format::onnx::ValueInfo& input);
  /// A label that a classifier chooses and the probabilities that it is chosen by become the outputs of `classify`.
  void add_outputs(std::span<const format::onnx::ValueInfo> outputs);

 private:
  /// An input, or an element of one that is a sequence.
  struct Place {
    std::string input, name;  ///< name: "x", "x_0"
    std::optional<int64_t> element;
  };

  Shape shape_of(const Place& at, const format::onnx::Type& type, std::vector<std::string>& names);
  Item input_item(const Place& at, const format::onnx::Type& type);
  Item sequence_item(const Place& at, const format::onnx::Type& type);
  Item tensor_item(const Place& at, const format::onnx::Type& type);
  void add_output(const std::string& output, const std::string& name, std::optional<int64_t> element, Item& item);
  /// Adds the output `name` of the program, which is `v` under this name.
  void add_result(const std::string& output, const std::string& name, std::optional<int64_t> element, Value* v,
                  DataType type);
  void add_classifier(std::span<const format::onnx::ValueInfo> outputs);
  Value* converted(std::string_view op, std::vector<NamedArg> args);
  void find_names(const ir::Block& block);
  void give_name(Value* v, const std::string& wanted);

  Scope& scope_;
  Context& context_;
  Imported& out_;
  std::map<std::string, int64_t> symbols_;
  std::map<std::string, Value*> classified_;       ///< the classifier's results, by the graph's names of its outputs
  std::unordered_map<std::string, Value*> named_;  ///< all values, once the first output is added
  std::unordered_set<const Value*> kept_;          ///< inputs and outputs, whose names stay
};

}  // namespace moka::import::onnx
