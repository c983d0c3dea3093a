// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/evaluate.h"
#include "ir/program.h"

/// One operation evaluated on constants by its reference kernel.
namespace moka::test {

/// The outputs; `stream` starts the random numbers of unseeded draws.
Result<std::vector<ir::RuntimeValue>> evaluate(std::string_view op, std::vector<ir::NamedArg> args,
                                               uint64_t stream = 1);

/// The first output, a tensor; an empty tensor and a failed test when the operation fails.
ir::Tensor call(std::string_view op, std::vector<ir::NamedArg> args, uint64_t stream = 1);

/// Whether the operation fails with a message that contains `about`.
testing::AssertionResult refuses(std::string_view op, std::vector<ir::NamedArg> args, std::string_view about);

}  // namespace moka::test
