// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace moka {

/// Detects damaged bytes, about as fast as memory is read. It does not protect against deliberate changes.
uint64_t checksum(std::span<const std::byte> bytes);

/// 128 bits that identify bytes: XXH3. It does not protect against deliberate changes either.
class Digest {
 public:
  Digest();
  ~Digest();
  void add(std::span<const std::byte> bytes);
  /// 32 hexadecimal digits of all bytes so far.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace moka
