// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace moka::compiler {

/// A character at the start of UTF-8 text. A byte that is not UTF-8 is U+FFFD.
struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 1;
};
CodePoint code_point(std::string_view text);

/// Whether a character has no picture of its own, or changes how others are displayed: zero-width and bidirectional
/// controls, line separators.
bool is_invisible(uint32_t code_point);

/// The name of the class generated for a model file of this name (without folders and extension). Every character other
/// than letters, digits and underscores becomes an underscore, and a leading digit or accent gets an underscore in
/// front.
std::string class_name(std::string_view model_name);

/// "silero-vad" for "a/silero-vad.mlpackage/".
std::string model_name(std::string_view path);

}  // namespace moka::compiler
