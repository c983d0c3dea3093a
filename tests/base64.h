// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sodium/utils.h>

#include <stdexcept>
#include <string>

namespace moka::test {

/// The bytes of base64 with padding. Throws std::invalid_argument for other texts.
inline std::string base64(const std::string& text) {
  std::string out(text.size(), '\0');
  size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), text.data(), text.size(), "\n", &size,
                        nullptr, sodium_base64_VARIANT_ORIGINAL) != 0)
    throw std::invalid_argument("not base64");
  out.resize(size);
  return out;
}

}  // namespace moka::test
