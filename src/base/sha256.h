// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sodium/crypto_hash_sha256.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace moka {

/// SHA-256 (FIPS 180-4) of bytes that come in pieces.
class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  void add(std::span<const std::byte> bytes) {
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  }
  /// The hash of all that was added. Nothing may be added afterwards.
  std::array<std::byte, 32> finish();

 private:
  crypto_hash_sha256_state state_;
};

/// SHA-256 of bytes.
std::array<std::byte, 32> sha256(std::span<const std::byte> bytes);

/// Base64 with padding (RFC 4648).
std::string base64(std::span<const std::byte> bytes);

}  // namespace moka
