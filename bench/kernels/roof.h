#pragma once

#include <benchmark/benchmark.h>

namespace moka::bench {

/// Peak floating-point operations per second of one thread, for multiply-adds in registers with the device's
/// instructions. Measured once.
double roof();

/// Keeps the shortest time and reports it in microseconds, as GFLOP/s, and as a fraction of the peak of all threads.
class Shortest {
 public:
  void add(double seconds) { best_ = best_ == 0 || seconds < best_ ? seconds : best_; }
  void report(benchmark::State& state, double flops, int threads) const;

 private:
  double best_ = 0;
};

}  // namespace moka::bench
