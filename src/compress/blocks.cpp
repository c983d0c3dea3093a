// SPDX-License-Identifier: Apache-2.0
#include "compress/blocks.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/half.h"
#include "base/processors.h"

namespace moka::compress {

int64_t Blocks::total() const {
  int64_t out = 1;
  for (const int64_t n : counts) out *= n;
  return out;
}

Bytes pack(const std::vector<uint8_t>& codes, unsigned bits) {
  auto out = std::make_shared<std::vector<std::byte>>((codes.size() * bits + 7) / 8);
  if (bits == 8) {
    std::ranges::transform(codes, out->begin(), [](uint8_t c) { return std::byte{c}; });
    return {*out, out};
  }
  unsigned held = 0, count = 0;
  size_t at = 0;
  for (const uint8_t code : codes) {
    held |= (code & ((1U << bits) - 1)) << count;
    for (count += bits; count >= 8; count -= 8, held >>= 8) (*out)[at++] = static_cast<std::byte>(held);
  }
  if (count > 0) (*out)[at] = static_cast<std::byte>(held);
  return {*out, out};
}

Bytes store(std::span<const float> values, bool half) {
  if (!half) return Bytes::copy_of(std::as_bytes(values));
  auto out = std::make_shared<std::vector<uint16_t>>(values.size());
  std::transform(values.begin(), values.end(), out->begin(), half::from_float);
  return {std::as_bytes(std::span(*out)), out};
}

float rounded(float value, bool half) { return half ? half::to_float(half::from_float(value)) : value; }

format::BlobType float_type(bool half) { return half ? format::BlobType::float16 : format::BlobType::float32; }

format::BlobType unsigned_type(unsigned bits) {
  switch (bits) {
    case 1: return format::BlobType::uint1;
    case 2: return format::BlobType::uint2;
    case 3: return format::BlobType::uint3;
    case 4: return format::BlobType::uint4;
    case 6: return format::BlobType::uint6;
    default: return format::BlobType::uint8;
  }
}

Part numbers(std::span<const float> values, Shape shape, bool half) {
  return {float_type(half), std::move(shape), store(values, half)};
}

Bytes mask_bits(const std::vector<bool>& kept) {
  auto out = std::make_shared<std::vector<std::byte>>((kept.size() + 7) / 8);
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) (*out)[i / 8] |= std::byte{1} << (i % 8);
  return {*out, out};
}

std::vector<uint8_t> kept_codes(const std::vector<uint8_t>& codes, const std::vector<bool>& kept) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < codes.size(); ++i)
    if (kept[i]) out.push_back(codes[i]);
  return out;
}

size_t bytes_of(const Encoding& encoding) {
  size_t out = 0;
  for (const ConstexprOp& op : encoding.operations)
    for (const Parameter& p : op.parameters)
      if (const auto* part = std::get_if<Part>(&p.value)) out += part->data.size();
  return out;
}

void in_parallel(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  auto run = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;) work(i);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min<size_t>(static_cast<size_t>(processors()), count); ++i) others.emplace_back(run);
  run();
  for (std::thread& t : others) t.join();
}

}  // namespace moka::compress
