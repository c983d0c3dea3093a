// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

/// Names and constants of other formats as MIL has them. All functions throw Failure.
namespace moka::import {

/// `name` with only the characters that MIL allows.
std::string identifier(std::string_view name);

/// The tensor in the type that its values are computed as. Refuses integers that do not fit into int32, but for the
/// largest and smallest of int64, which stand for "no limit".
ir::Tensor computed(const ir::Tensor& t, std::string_view name);
/// Any numbers as integers. Precondition: not strings.
std::vector<int64_t> integers_of(const ir::Tensor& t);
ir::Tensor converted(const ir::Tensor& t, ir::DType type);
/// Whether the value is a constant, and its tensor.
const ir::Tensor* constant_of(const ir::Value* v);

}  // namespace moka::import
