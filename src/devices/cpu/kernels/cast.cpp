// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "base/half.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

namespace {

using ir::DType;

/// Truncates, saturates, and turns NaN into 0.
int32_t to_integer(float v) {
  constexpr float kEnd = 2147483648.0f;
  const float inside = v >= kEnd || v <= -kEnd || v != v ? 0.0f : v;
  const int32_t least = v <= -kEnd ? std::numeric_limits<int32_t>::min() : static_cast<int32_t>(inside);
  return v >= kEnd ? std::numeric_limits<int32_t>::max() : least;
}

template <class From, class To, class F>
void each(const std::byte* x, std::byte* y, int64_t first, int64_t n, F f) {
  const auto* from = reinterpret_cast<const From*>(x) + first;
  auto* to = reinterpret_cast<To*>(y) + first;
  for (int64_t i = 0; i < n; i++) to[i] = f(from[i]);
}

/// Converts elements [first, first + n) of x.
using Convert = void (*)(const std::byte* x, std::byte* y, int64_t first, int64_t n);

struct CastEntry {
  DType from, to;
  Convert convert;
};

constexpr CastEntry kCasts[] = {
    {DType::fp32, DType::int32,
     [](auto x, auto y, auto first, auto n) { each<float, int32_t>(x, y, first, n, to_integer); }},
    {DType::int32, DType::fp32,
     [](auto x, auto y, auto first, auto n) {
       each<int32_t, float>(x, y, first, n, [](int32_t v) { return static_cast<float>(v); });
     }},
    {DType::fp32, DType::boolean,
     [](auto x, auto y, auto first, auto n) {
       each<float, uint8_t>(x, y, first, n, [](float v) { return static_cast<uint8_t>(v != 0); });
     }},
    {DType::int32, DType::boolean,
     [](auto x, auto y, auto first, auto n) {
       each<int32_t, uint8_t>(x, y, first, n, [](int32_t v) { return static_cast<uint8_t>(v != 0); });
     }},
    {DType::boolean, DType::fp32,
     [](auto x, auto y, auto first, auto n) {
       each<uint8_t, float>(x, y, first, n, [](uint8_t v) { return static_cast<float>(v); });
     }},
    {DType::boolean, DType::int32,
     [](auto x, auto y, auto first, auto n) {
       each<uint8_t, int32_t>(x, y, first, n, [](uint8_t v) { return static_cast<int32_t>(v); });
     }},
    {DType::fp16, DType::fp32,
     [](const std::byte* x, std::byte* y, int64_t first, int64_t n) {
       half_to_float(reinterpret_cast<const uint16_t*>(x) + first, reinterpret_cast<float*>(y) + first,
                     static_cast<size_t>(n));
     }},
    {DType::fp32, DType::fp16,
     [](const std::byte* x, std::byte* y, int64_t first, int64_t n) {
       float_to_half(reinterpret_cast<const float*>(x) + first, reinterpret_cast<uint16_t*>(y) + first,
                     static_cast<size_t>(n));
     }},
};

Match match_cast(const MatchCall& m) {
  const DType from = m.call.dtype("x"), to = m.outputs[0].dtype();
  const CastEntry* entry = nullptr;
  for (const CastEntry& e : kCasts)
    if (e.from == from && e.to == to) entry = &e;
  if (entry == nullptr) return Match::no(cat(from, " to ", to));
  if (m.outputs[0].shape().count() == 0) return Match::no("an empty tensor");
  const Chunks chunks{m.outputs[0].shape().count()};
  const auto x = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.cast";
  c.tiles = chunks.tiles();
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [=, convert = entry->convert](const KernelArgs& args) -> Status {
    const int64_t first = chunks.first(args.begin);
    convert(args.in[x].as<std::byte>(), args.out[0].as<std::byte>(), first, chunks.first(args.end) - first);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_cast() {
  static const KernelDef defs[] = {{.name = "cpu.cast", .ops = {"cast"}, .match = match_cast}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
