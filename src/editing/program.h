// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "editing/features.h"

/// ML programs as messages: MILSpec.Program, Function, Block, Operation.
namespace moka::editing {

struct ProgramFunction {
  std::string name;
  std::string opset;  ///< "CoreML7"
  Message function;
  Message block;  ///< of its opset
};
/// Errors: malformed (a function has no block for its opset).
Result<std::vector<ProgramFunction>> program_functions(const Message& model);
/// The function that an interface describes: the one of its name, or the only one. Error malformed.
Result<ProgramFunction> function_of(const Message& model, const Interface& interface);

/// A tensor type; -1 is an unknown dimension.
struct TensorType {
  std::string element;  ///< MILSpec.DataType: "FLOAT32"
  std::vector<int64_t> shape;
  bool operator==(const TensorType&) const = default;
};
/// nullopt if the type is not a tensor of known rank.
Result<std::optional<TensorType>> tensor_type(const Message& value_type);
Result<Message> make_type(const TensorType& type);
/// A NamedValueType.
Result<Message> make_named(const std::string& name, const TensorType& type);
/// A Value that stores its numbers in the message. The elements are FLOAT16, FLOAT32, INT32, INT8, UINT8 or BOOL.
Result<Message> make_value(const TensorType& type, const std::vector<double>& numbers);
Result<Message> make_text(const std::string& text);

/// Renames what a block returns.
Status rename_outputs(Message block, const Names& names);

/// Calls `visit` for each binding of the operation and of the operations in its blocks.
Status for_bindings(const Message& operation, const std::function<Status(Message)>& visit);
/// The values that an operation, or an operation in its blocks, reads.
Result<std::vector<std::string>> values_read(const Message& operation);
/// The values that it defines itself.
Result<std::vector<std::string>> values_defined(const Message& operation);
/// Whether it, or an operation in its blocks, does more than define values: it writes a state or prints.
Result<bool> has_effect(const Message& operation);
/// The constant text of the attribute "name", or the name of the first output.
Result<std::string> operation_name(const Message& operation);

/// All names of values in the function.
Result<std::set<std::string>> names_in(const ProgramFunction& function);
/// The first of `base`, base_1, base_2, ... that is not among `names`. Adds it to `names`.
std::string unique_name(const std::string& base, std::set<std::string>& names);
/// Renames values in the function, including its inputs and outputs.
Status rename_values(const ProgramFunction& function, const Names& names);

/// Renames values so that no two blocks use the same name.
Status make_names_unique(const ProgramFunction& function);

/// An operation with one output. Arguments are names of values.
Result<Message> make_operation(const std::string& type, const std::vector<std::pair<std::string, std::string>>& inputs,
                               const std::string& output, const TensorType& type_of_output);
/// An operation `const`.
Result<Message> make_constant(const std::string& name, const Message& value);

}  // namespace moka::editing
