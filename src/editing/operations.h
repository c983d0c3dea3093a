// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "editing/program.h"

namespace moka::editing {

/// The operations of a function's block. Changes apply to `list`; write() stores them in the block.
class Operations {
 public:
  static Result<Operations> of(const ProgramFunction& function);
  std::vector<Message> list;
  std::set<std::string> names;  ///< of all values of the function
  /// Inserts an operation at index `at` and moves `at` behind it. Its new name begins with `base`. `arguments`: values
  /// by parameter. Returns the name.
  Result<std::string> insert(size_t& at, const std::string& type,
                             const std::vector<std::pair<std::string, std::string>>& arguments, const std::string& base,
                             const TensorType& type_of_output);
  Result<std::string> insert_constant(size_t& at, const Message& value, const std::string& base);
  /// The operation that computes an output of the function.
  struct Definition {
    size_t operation = 0;  ///< index
    Message output;        ///< a NamedValueType
    TensorType type;
  };
  /// Errors: unsupported (no tensor of known rank), invalid_argument (the output is an input of the function).
  Result<Definition> definition_of_output(const std::string& name) const;
  /// Replaces a value in the arguments of the operations from index `first` on. outputs: also in the block's outputs.
  Status replace_uses(const std::string& from, const std::string& to, size_t first, bool outputs = false);
  /// Replaces values in the arguments of all operations.
  Status replace_uses(const Names& names);
  /// Whether an operation from index `first` on, or an output of the block, reads the value.
  Result<bool> is_read(const std::string& value, size_t first = 0) const;
  Result<bool> is_returned(const std::string& value) const;
  /// The types of the function's inputs and of the operations' outputs by name, if they are tensors of known rank.
  Result<std::map<std::string, TensorType>> types() const;
  /// Drops operations `const` whose values are not read.
  Status drop_constants();
  /// Writes the list into the block.
  Status write();

 private:
  explicit Operations(ProgramFunction function) : function_(std::move(function)) {}
  ProgramFunction function_;
};

}  // namespace moka::editing
