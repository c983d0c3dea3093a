// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "conformance/case_util.h"

/// Columns that write a case's program in some form, read it again and interpret it.
namespace moka::conformance {

/// Interprets the program with a limit for the bytes of its values.
Result<std::vector<ir::Tensor>> interpret(const ir::Function& f, std::vector<ir::RuntimeValue> given);
Result<std::vector<ir::Tensor>> interpret(const Case& c, const ir::Program& program);

/// Printed text. Printing the program that was read gives the same text.
Result<std::vector<ir::Tensor>> text(const Case& c);
/// A message of the specification and a weight file.
Result<std::vector<ir::Tensor>> message(const Case& c);
/// A compiled model.
Result<std::vector<ir::Tensor>> compiled(const Case& c);
/// The specification restored from a compiled model. Compiling it again gives the same files.
Result<std::vector<ir::Tensor>> decompiled(const Case& c);

}  // namespace moka::conformance
