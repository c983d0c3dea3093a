#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace moka {

/// SHA-256 of bytes (FIPS 180-4).
std::array<std::byte, 32> sha256(std::span<const std::byte> bytes);

/// Base64 with padding (RFC 4648).
std::string base64(std::span<const std::byte> bytes);

}  // namespace moka
