#pragma once

#include <string>
#include <string_view>

namespace moka::cli {

/// To standard output. A full disk or a closed pipe shows when the program ends.
void print(std::string_view text);
/// One line to standard error: "moka predict: text".
void note(std::string_view command, std::string_view text);
bool colour_output();
std::string bold(std::string_view text);
std::string dim(std::string_view text);

/// "Label     value" under each other, labels dim.
std::string fact(std::string_view label, std::string_view value);

}  // namespace moka::cli
