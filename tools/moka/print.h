#pragma once

#include <string>
#include <string_view>

#include "io/table.h"

namespace moka::cli {

/// To standard output. A full disk or a closed pipe shows when the program ends.
void print(std::string_view text);
/// One line to standard error: "moka predict: text".
void note(std::string_view command, std::string_view text);
bool colour_output();
std::string bold(std::string_view text);
std::string dim(std::string_view text);

/// The cells of a line of standard output; io::kAnyWidth where it is not a terminal: nothing is cut there.
size_t line_width();
std::string table_text(const io::Table& table);

/// "Label       value" under each other, labels dim; values take as many lines as they need.
std::string fact(std::string_view label, std::string_view value);
/// Text in as many lines as it needs, each behind `indent` spaces.
std::string paragraph(std::string_view text, size_t indent = 0);

}  // namespace moka::cli
