// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moka::cli {

std::string base64_of(std::span<const std::byte> bytes);
/// nullopt: the text is not base64 with padding.
std::optional<std::vector<std::byte>> bytes_of_base64(std::string_view text);

}  // namespace moka::cli
