#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/generate/interface.h"

/// Shared by the writers of all languages.
namespace moka::compiler {

using Words = std::map<std::string, std::string, std::less<>>;

/// `text` with every $name$ replaced by its word. A line that is nothing but a name whose word is empty goes.
std::string fill(std::string_view text, const Words& words);

/// For a comment: what ends a line becomes a space, and so does every other control character.
std::string one_line(std::string_view text);

/// A literal in double quotes, as C, C++, Objective-C and Python read it, and Swift with `swift`.
std::string literal(std::string_view text, bool swift = false);

/// What `write` gives for each field, with `between` in between.
std::string each(const std::vector<Field>& fields, std::string_view between,
                 const std::function<std::string(const Field&)>& write);

}  // namespace moka::compiler
