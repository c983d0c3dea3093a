// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

namespace moka::bench {

/// Peak floating-point operations per second of one thread, for multiply-adds in registers with the device's
/// instructions. Measured once.
double roof();
/// Bytes per second that one thread reads from and writes to memory when it copies. Measured once.
double memory_roof();

/// Keeps the shortest time and reports it in microseconds, as GFLOP/s, and as fractions of the peak of all threads and
/// of what memory gives one thread. The second may exceed 1 where data stays in the caches.
class Shortest {
 public:
  void add(double seconds) { best_ = best_ == 0 || seconds < best_ ? seconds : best_; }
  void report(benchmark::State& state, double flops, int threads, double bytes = 0) const;

 private:
  double best_ = 0;
};

}  // namespace moka::bench
