// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/generate/field.h"

/// Shared by the generators of all languages.
namespace moka::compiler {

using Words = std::map<std::string, std::string, std::less<>>;

/// Replaces every $name$ in `text` with its word. Removes a line that consists only of names with empty words.
std::string fill(std::string_view text, const Words& words);

/// Makes text fit a comment line: newlines and other control and invisible characters become spaces.
std::string one_line(std::string_view text);

/// A literal in double quotes for C, C++, Objective-C and Python, or for Swift with `swift`.
std::string literal(std::string_view text, bool swift = false);

/// The result of `write` for each field, joined by `between`.
std::string each(const std::vector<Field>& fields, std::string_view between,
                 const std::function<std::string(const Field&)>& write);

/// The name with its first letter in upper case, for the middle of a name.
std::string capitalized(std::string name);

bool is_image(const Field& field);

}  // namespace moka::compiler
