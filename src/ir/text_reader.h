// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ir/program.h"
#include "ir/text_value.h"

namespace moka::ir {

/// Reads MIL text of either dialect; grammar in docs/mil-text.md. Every operation is checked and its types inferred.
/// Errors: malformed with line and column; unsupported (operation, rank); those of the resolver and of the budget.
Result<Program> read_text(std::string_view text, const OpTable& table, const TextOptions& options = {});

}  // namespace moka::ir
