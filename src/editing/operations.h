#pragma once

#include "editing/program.h"

namespace moka::editing {

/// The operations of a block, to be changed together.
class Operations {
 public:
  static Result<Operations> of(const ProgramFunction& function);
  std::vector<Message> list;
  std::set<std::string> names;  ///< of all values of the function
  /// Adds an operation with a new name that begins with `base`, at `at`, which then points behind it. `arguments`:
  /// values by parameter. Returns the name.
  Result<std::string> insert(size_t& at, const std::string& type,
                             const std::vector<std::pair<std::string, std::string>>& arguments, const std::string& base,
                             const TensorType& type_of_output);
  Result<std::string> insert_constant(size_t& at, const Message& value, const std::string& base);
  /// Replaces a value where operations and the block's outputs, from `first` on, read it.
  Status replace_uses(const std::string& from, const std::string& to, size_t first, bool outputs = false);
  /// Whether an operation from `first` on or an output reads it.
  Result<bool> is_read(const std::string& value, size_t first = 0) const;
  Result<bool> is_returned(const std::string& value) const;
  /// The names of the operations' outputs and their types, as far as they are tensors of known rank, with the inputs.
  Result<std::map<std::string, TensorType>> types() const;
  /// Drops operations `const` that nobody reads.
  Status drop_constants();
  /// Writes the list into the block.
  Status write();

 private:
  explicit Operations(ProgramFunction function) : function_(std::move(function)) {}
  ProgramFunction function_;
};

}  // namespace moka::editing
