// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "api/internal.h"
#include "ir/op_def.h"
#include "ir/program.h"
#include "moka/program.h"

namespace moka::api {

/// Throws invalid_argument for a value that no builder made.
ir::Value* handle(ProgramBuilder::Value value);

/// The value as an operand in `block`. Throws invalid_argument for a value that is not visible there: of another
/// function, or inside another block.
ir::Value* visible(ProgramBuilder::Value value, const ir::Block& block);

/// An argument as the operation of `block` takes it. Numbers without an element type get that of the arguments that
/// share their type variable, or else the first one that the parameter accepts.
ir::NamedArg to_named(const ir::OpVersion& version, const ProgramBuilder::Argument& argument,
                      std::span<const ProgramBuilder::Argument> all, const ir::Block& block);

/// The elements of an array, converted if `type` is another one. Otherwise the tensor refers to a contiguous array.
ir::Tensor tensor_of(const MultiArray& array, ir::DType type);

/// The description of an output of this type. Throws invalid_argument for types that no feature has.
FeatureDescription output_feature(const ir::Type& type);

/// Errors in what the caller asks for are invalid_argument.
template <class T>
T built(Result<T> result) {
  if (!result.ok() && result.error().code() == ErrorCode::malformed)
    throw Exception(ErrorKind::invalid_argument, result.error().to_string());
  return unwrap(std::move(result));
}

}  // namespace moka::api
