#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace moka {

/// SHA-256 (FIPS 180-4) of bytes that come in pieces.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  /// The hash of all that was added. Nothing may be added afterwards.
  std::array<std::byte, 32> finish();

 private:
  static constexpr size_t block_size = 64;
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 2 * block_size> pending_{};
  size_t pending_size_ = 0;
  uint64_t size_ = 0;
};

/// SHA-256 of bytes.
std::array<std::byte, 32> sha256(std::span<const std::byte> bytes);

/// Base64 with padding (RFC 4648).
std::string base64(std::span<const std::byte> bytes);

}  // namespace moka
