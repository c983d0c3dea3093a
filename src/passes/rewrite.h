// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/program.h"

/// Helpers for passes.
namespace moka::passes {

/// Replaces the only output of `op` by `with` and erases the operation. Does nothing and returns false if `with` is an
/// inline constant, which would be erased with its operation.
bool replace_and_erase(ir::Op& op, ir::Value* with);

/// Swaps the names of two values. `from` is about to be erased, and its replacement takes over its name.
void take_name(ir::Value& to, ir::Value& from);

/// Whether exactly one operation reads the value, once, in the same block as its producer, and no block returns it.
bool has_one_use(const ir::Value& v);

/// The operation that produces `v`, if it is of that type and has no epilogue; else nullptr.
const ir::Op* made_by(const ir::Value* v, std::string_view type);

/// Whether the operation checks values that are known only while running. It must then stay, because it may fail.
bool checks_while_running(const ir::Op& op);

/// The tensor of a `const` or an inline constant; nullptr otherwise.
const ir::Tensor* tensor_constant(const ir::Value* v);

/// A known number given to `param`, or its default. Scalars only.
std::optional<double> number_of(const ir::Op& op, std::string_view param);
/// Known integers given to `param`; no defaults.
std::optional<std::vector<int64_t>> ints_of(const ir::Op& op, std::string_view param);
/// A known text given to `param`, or its default; empty when unknown.
std::string_view text_of(const ir::Op& op, std::string_view param);

/// The value of a constant, or of operations on constants (compressed weights, casts, transposes, ...). Does not change
/// the program. nullopt: it depends on an input or a parameter, or it or an intermediate value is larger than
/// `max_bytes`.
std::optional<ir::Tensor> constant_value(const ir::Value& v, size_t max_bytes);

/// An argument for a builder. Inline constants belong to one operation, so they are copied.
ir::NamedArg given(std::string param, ir::Value* v);

/// All elements of a tensor as doubles.
std::vector<double> as_doubles(const ir::Tensor& t);
/// A tensor of float32 or float64 of these numbers.
Result<ir::Tensor> rounded(const std::vector<double>& v, ir::DType dtype, const ir::Shape& shape);

/// Whether constant weights of up to `max_bytes` in float32 may be expanded. Compressed weights stay compressed unless
/// they are small.
bool may_expand(const ir::Value& weight, size_t max_bytes);

/// Infers the output types of `op` again. If they are compatible with the old ones, sizes that either knows are kept.
/// Returns whether any type changed.
Result<bool> refresh_types(ir::Op& op);

}  // namespace moka::passes
