// SPDX-License-Identifier: Apache-2.0
#include "view/base64.h"

#include <sodium/utils.h>

#include <algorithm>

namespace moka::cli {

std::string base64_of(std::span<const std::byte> bytes) {
  constexpr int variant = sodium_base64_VARIANT_ORIGINAL;
  std::string out(sodium_base64_encoded_len(bytes.size(), variant), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    variant);
  out.pop_back();  // the final 0
  return out;
}

std::optional<std::vector<std::byte>> bytes_of_base64(std::string_view text) {
  // libsodium 1.0.18 takes every byte from 128 on for '/'.
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > 127; }))
    return std::nullopt;
  std::vector<std::byte> out(text.size() / 4 * 3 + 3);
  size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), text.data(), text.size(), nullptr,
                        &size, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0)
    return std::nullopt;
  out.resize(size);
  return out;
}

}  // namespace moka::cli
