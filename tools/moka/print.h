// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "io/table.h"

namespace moka::cli {

/// Writes to standard output. A full disk or a closed pipe is reported when the program ends.
void print(std::string_view text);
/// Writes what is buffered for standard output. Returns the errno of the first failure since the program began, or 0.
int flush_output();
/// One line to standard error: "moka predict: text".
void note(std::string_view command, std::string_view text);
bool color_output();
std::string bold(std::string_view text);
std::string dim(std::string_view text);

/// The cells of a line of standard output; io::kAnyWidth if it is not a terminal, so that nothing is cut.
size_t line_width();
std::string table_text(const io::Table& table);

/// Aligned lines of "Label       value" with dim labels; long values take several lines.
std::string fact(std::string_view label, std::string_view value);
/// Text in as many lines as necessary, each indented by `indent` spaces.
std::string paragraph(std::string_view text, size_t indent = 0);

}  // namespace moka::cli
