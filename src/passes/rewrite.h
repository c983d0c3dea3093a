#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/program.h"

/// What several passes need.
namespace moka::passes {

/// Replaces the only output of `op` by `with` and erases the operation. False, and nothing is done, where `with` is an
/// inline constant, which ends with its operation.
bool replace_and_erase(ir::Op& op, ir::Value* with);

/// Gives the only output of `op` its name: `from`, which is about to be erased, gets the other one.
void take_name(ir::Value& to, ir::Value& from);

/// Exactly one operation reads it, once, in the same block as its producer, and no block returns it.
bool has_one_use(const ir::Value& v);

/// The operation that makes `v` if it is of that type and applies nothing afterwards; nullptr otherwise.
const ir::Op* made_by(const ir::Value* v, std::string_view type);

/// Values that are known only while running may be wrong for it: an error that must stay.
bool checks_while_running(const ir::Op& op);

/// The tensor of a `const` or an inline constant; nullptr otherwise.
const ir::Tensor* tensor_constant(const ir::Value* v);

/// A known number given to `param`, or its default. Scalars only.
std::optional<double> number_of(const ir::Op& op, std::string_view param);
/// Known integers given to `param`; no defaults.
std::optional<std::vector<int64_t>> ints_of(const ir::Op& op, std::string_view param);
/// The known axes of a transpose, counted from the front.
std::optional<std::vector<int64_t>> perm_of(const ir::Op& op);
/// A known text given to `param`, or its default; empty when unknown.
std::string_view text_of(const ir::Op& op, std::string_view param);

/// The value of a constant or of operations on constants alone (compressed weights, casts, transposes, ...), without
/// changing the program; nothing when it depends on an input or when it or a step to it is larger than `max_bytes`.
std::optional<ir::Tensor> constant_value(const ir::Value& v, size_t max_bytes);

/// All elements of a tensor as doubles.
std::vector<double> as_doubles(const ir::Tensor& t);

/// Infers the output types of `op` again. Where what was known is compatible, sizes known on either side are kept.
/// Returns whether any type changed.
Result<bool> refresh_types(ir::Op& op);

}  // namespace moka::passes
