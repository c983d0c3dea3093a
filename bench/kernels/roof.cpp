// SPDX-License-Identifier: Apache-2.0
#include "roof.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "devices/cpu/isa.h"

namespace moka::bench {

namespace {

using devices::cpu::Isa;

constexpr int kSums = 12;  // enough to keep two units with a latency of six busy
constexpr int kSteps = 20000;

// A macro, because a function template would lose the target attribute.
#define MOKA_CHAINS(name, lanes)                             \
  void name() {                                              \
    typedef float V __attribute__((vector_size(4 * lanes))); \
    V sums[kSums] = {}, x = V{} + 0.5f, y = V{} + 0.25f;     \
    asm volatile("" : "+x"(x), "+x"(y));                     \
    for (int i = 0; i < kSteps; i++) {                       \
      _Pragma("GCC unroll 12") for (V & sum : sums) {        \
        sum = sum * x + y;                                   \
        asm volatile("" : "+x"(sum));                        \
      }                                                      \
    }                                                        \
  }

#if defined(__x86_64__)
[[gnu::target("avx512f")]] MOKA_CHAINS(chains_avx512, 16) [[gnu::target("avx2,fma")]] MOKA_CHAINS(chains_avx2, 8)
    MOKA_CHAINS(chains_base, 4)
#endif

        double measured() {
#if defined(__x86_64__)
  const Isa isa = devices::cpu::isa();
  const int lanes = isa == Isa::avx512 ? 16 : isa == Isa::avx2 ? 8 : 4;
  const auto chains = isa == Isa::avx512 ? chains_avx512 : isa == Isa::avx2 ? chains_avx2 : chains_base;
  double best = 1;
  for (int i = 0; i < 200; i++) {
    const auto start = std::chrono::steady_clock::now();
    chains();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 2.0 * kSteps * kSums * lanes / best;
#else
  return devices::cpu::flops_per_second();
#endif
}

}  // namespace

double roof() {
  static const double once = measured();
  return once;
}

double memory_roof() {
  static const double once = [] {
    constexpr size_t kBytes = 256 << 20;  // more than caches hold
    std::vector<char> from(kBytes, 1), to(kBytes, 2);
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
      const auto start = std::chrono::steady_clock::now();
      std::memcpy(to.data(), from.data(), kBytes);
      benchmark::DoNotOptimize(to.data());
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return 2.0 * kBytes / best;
  }();
  return once;
}

void Shortest::report(benchmark::State& state, double flops, int threads, double bytes) const {
  state.counters["min_us"] = best_ * 1e6;
  state.counters["GFLOP/s"] = flops / best_ * 1e-9;
  state.counters["of_roof"] = flops / best_ / (roof() * threads);
  if (bytes > 0) state.counters["of_memory"] = bytes / best_ / memory_roof();
}

}  // namespace moka::bench
