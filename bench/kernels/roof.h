#pragma once

#include <benchmark/benchmark.h>

namespace moka::bench {

/// Floating-point operations a second of multiplications and additions in registers: one thread, the instructions that
/// the device uses. Measured once.
double roof();

/// Keeps the shortest time, and says it as microseconds, GFLOP/s and, of the roof of all threads, a fraction.
class Shortest {
 public:
  void add(double seconds) { best_ = best_ == 0 || seconds < best_ ? seconds : best_; }
  void report(benchmark::State& state, double flops, int threads) const;

 private:
  double best_ = 0;
};

}  // namespace moka::bench
