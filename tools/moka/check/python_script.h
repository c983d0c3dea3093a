// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moka::cli {

/// Runs a script with these arguments in the interpreter that $MOKA_PYTHON names, else python3. Throws IoError,
/// beginning with `subject`, when it cannot be started, and with the last line that it wrote when it fails.
void run_python(std::string_view script, const std::vector<std::string>& arguments, const std::string& subject);

}  // namespace moka::cli
