// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/budget.h"
#include "ir/tensor.h"
#include "ir/text_lexer.h"
#include "ir/type.h"

/// Types and constants of MIL text; grammar in docs/mil-text.md.
namespace moka::ir {

/// Loads the tensor of `BLOBFILE(path, offset)`. Arguments: the path as written, the offset of the record, the declared
/// type.
using BlobResolver = std::function<Result<Tensor>(std::string_view path, uint64_t offset, const Type& type)>;

struct TextOptions {
  BlobResolver blob;                                    ///< empty: text that refers to files is refused
  MemoryBudget* budget = nullptr;                       ///< charged for literals; null: no limit
  const std::map<std::string, Shape>* sizes = nullptr;  ///< of flexible inputs of functions; may be null
  bool placeholders = false;                            ///< see registered_operation
};

/// `type` with the sizes of the input `name`, where it has that rank and leaves those sizes open.
Type with_sizes(Type type, const std::map<std::string, Shape>& sizes, const std::string& name);

Result<Type> read_type(Lexer& lexer);
/// Reads `type(literal)`. Takes memory at most proportional to the text.
Result<Constant> read_value(Lexer& lexer, const TextOptions& options);
/// Whether the current token starts a type rather than a name.
bool at_value(Lexer& lexer);

/// Program version 1.3 and later writes scalars as `fp16` instead of `tensor<fp16, []>`.
enum class Dialect : uint8_t { tensors_only, bare_scalars };
Dialect dialect_of(std::string_view program_version);

void append_type(std::string& out, const Type& type, Dialect dialect);
void append_value(std::string& out, const Constant& value, Dialect dialect);
void append_name(std::string& out, std::string_view name);
/// "0x1.8p+1", "-inf", "nan".
void append_float(std::string& out, double v);

}  // namespace moka::ir
