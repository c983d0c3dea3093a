// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <sodium/utils.h>

namespace moka {

std::array<std::byte, 32> Sha256::finish() {
  std::array<std::byte, crypto_hash_sha256_BYTES> out;
  crypto_hash_sha256_final(&state_, reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::array<std::byte, 32> sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

std::string base64(std::span<const std::byte> bytes) {
  constexpr int variant = sodium_base64_VARIANT_ORIGINAL;
  std::string out(sodium_base64_encoded_len(bytes.size(), variant), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    variant);
  out.pop_back();  // the final 0
  return out;
}

}  // namespace moka
