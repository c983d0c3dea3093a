// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/program.h"

namespace moka::ir {

/// Prints the program as MIL text (grammar in docs/mil-text.md), in the dialect of its version. Constants from a
/// weights file are written as BLOBFILE(path, offset), all others in full. Reading the text gives the same program.
/// `compiled`: the form of compiled models. Functions list their inputs by name, and operations that the source does
/// not name have no name.
std::string print_text(const Program& program, bool compiled = false);

}  // namespace moka::ir
