// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Numbers and names in texts.
namespace moka::files {

/// Without white space at both ends.
std::string_view trimmed(std::string_view text);
/// With ASCII letters in lower case.
std::string in_lower_case(std::string_view text);
/// The end of a path after its last dot, in lower case: "png". Empty: none.
std::string extension_of(std::string_view path);
/// The whole text as a number. nullopt if it contains anything else.
std::optional<double> number_in(std::string_view text);
std::optional<int64_t> integer_in(std::string_view text);
/// "'a', 'b' and 7 more".
std::string quoted(std::span<const std::string> names);
/// "12.3 ms", "1.23 s".
std::string seconds_text(double seconds);

}  // namespace moka::files
