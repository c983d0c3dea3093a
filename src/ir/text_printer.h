#pragma once

#include <string>

#include "ir/program.h"

namespace moka::ir {

/// Prints the program as MIL text (grammar in docs/mil-text.md), in the dialect of its version. Constants from a
/// weights file are written as BLOBFILE(path, offset), all others in full. Reading the text gives the same program.
/// `sorted_inputs`: functions list their inputs by name, as compiled models do.
std::string print_text(const Program& program, bool sorted_inputs = false);

}  // namespace moka::ir
