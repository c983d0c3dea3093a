// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "moka/build.h"

namespace moka {

/// Builds an ML program in code, in the manner of MIL:
///
///   ProgramBuilder b("ios17");
///   auto x = b.input("x", DataType::float32, {1, 3, 8, 8});
///   auto y = b.op("relu", {{"x", b.op("conv", {{"x", x}, {"weight", weights}, {"pad_type", "same"}})}}, "y");
///   b.output(y);
///   Model model = b.build();   // or b.save("model.mlpackage")
///
/// Operations are checked as they are added; every function throws Exception.
class MOKA_EXPORT ProgramBuilder {
 public:
  /// A value of the program under construction.
  struct Value {
    void* handle = nullptr;
  };
  /// A value, a tuple of values, or a constant. Numbers take the element type that the parameter needs; arrays keep
  /// theirs. The program refers to contiguous arrays until it is saved or built.
  struct MOKA_EXPORT Argument {
    using Content = std::variant<Value, std::vector<Value>, MultiArray, std::string, bool, int, float, std::vector<int>,
                                 std::vector<float>, std::vector<std::string>>;
    std::string name;
    Content value;
    template <class T>
    Argument(std::string n, T v) : name(std::move(n)), value(std::move(v)) {}
    Argument(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
  };
  /// What an operation's block computes from its inputs.
  using Block = std::function<std::vector<Value>(const std::vector<Value>& inputs)>;

  explicit ProgramBuilder(const std::string& opset = "ios17");
  ~ProgramBuilder();
  ProgramBuilder(ProgramBuilder&&) noexcept;

  /// Starts a function. Without a call, everything belongs to `main`. The first function is the default one.
  void function(const std::string& name);

  /// Adds a function input. -1 stands for a dimension of any size.
  Value input(const std::string& name, DataType type, const std::vector<int64_t>& shape);
  /// Adds an input as described: an array of fixed or flexible sizes, or an image, whose value has the shape
  /// [1, channels, height, width] and numbers from 0 to 255.
  Value input(const FeatureDescription& feature);
  /// Adds a state, which read_state and coreml_update_state access.
  Value state(const std::string& name, DataType type, const std::vector<int64_t>& shape);
  /// A constant of an element type by its MIL name, such as "uint4" or "fp16", from integers or numbers.
  Value constant(const MultiArray& values, const std::string& element_type, const std::string& name = {});
  /// Adds an operation with one output.
  Value op(const std::string& type, std::vector<Argument> arguments, const std::string& name = {});
  /// Adds an operation with any number of outputs.
  std::vector<Value> ops(const std::string& type, std::vector<Argument> arguments, const std::string& name = {});
  /// Adds `cond` (two blocks without inputs) or `while_loop` (condition and body, whose inputs are the loop_vars).
  std::vector<Value> control(const std::string& type, std::vector<Argument> arguments, const std::vector<Block>& blocks,
                             const std::string& name = {});
  /// Returns the value. `name` becomes the name of the output; empty: the value's own name.
  void output(Value value, const std::string& name = {});
  /// Returns an image, whose value has the shape [1, channels, height, width].
  void image_output(Value value, ColorSpace color, const std::string& name = {});
  /// Returns the label of the largest probability, and the probability of each label.
  void classify(Value probabilities, const std::vector<std::string>& labels, const std::string& label = "classLabel",
                const std::string& probabilities_name = "classLabel_probs");
  void classify(Value probabilities, const std::vector<int64_t>& labels, const std::string& label = "classLabel",
                const std::string& probabilities_name = "classLabel_probs");
  /// Texts for the model's description: short_description, author, license, version, user_defined.
  void metadata(const ModelDescription& texts);

  /// The type of a value in MIL text: "tensor<fp32, [1, 3, 8, 8]>".
  static std::string type_of(Value value);
  static std::string name_of(Value value);
  std::string mil() const;
  /// The specification, and the weights in a file.
  ModelSource source() const;
  /// As ModelSource::save.
  void save(const std::filesystem::path& path, Overwrite overwrite = Overwrite::own_kind) const;
  /// Finishes the program. The builder is empty afterwards, and its values must not be used any more.
  Model build(const ModelConfiguration& configuration = {});

  struct Impl;
  explicit ProgramBuilder(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

/// The operations of MIL that an opset has, sorted.
MOKA_EXPORT std::vector<std::string> operations_of(const std::string& opset);

struct OperationParameter {
  std::string name;
  std::string type;  ///< "fp16, fp32", "a list"
  bool constant = false, optional = false;
};
MOKA_EXPORT std::vector<OperationParameter> parameters_of(const std::string& operation, const std::string& opset);

}  // namespace moka
