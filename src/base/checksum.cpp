#include "base/checksum.h"

#include <bit>
#include <cstring>

namespace moka {

namespace {
constexpr uint64_t kPrime = 0x9e3779b97f4a7c15;
constexpr size_t kLanes = 8;  // sums that do not wait for each other

uint64_t step(uint64_t sum, uint64_t word) { return std::rotl(sum ^ word, 29) * kPrime; }
}  // namespace

uint64_t checksum(std::span<const std::byte> bytes) {
  uint64_t lanes[kLanes];
  for (size_t i = 0; i < kLanes; i++) lanes[i] = kPrime * (2 * i + 1);
  size_t at = 0;
  for (; bytes.size() - at >= sizeof lanes; at += sizeof lanes) {
    uint64_t words[kLanes];
    std::memcpy(words, bytes.data() + at, sizeof words);
    for (size_t i = 0; i < kLanes; i++) lanes[i] = step(lanes[i], words[i]);
  }
  uint64_t sum = step(kPrime, bytes.size());
  for (const uint64_t lane : lanes) sum = step(sum, lane);
  for (; at < bytes.size(); at++) sum = step(sum, static_cast<uint64_t>(bytes[at]));
  return sum ^ (sum >> 32);
}

}  // namespace moka
