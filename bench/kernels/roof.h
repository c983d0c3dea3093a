#pragma once

#include <benchmark/benchmark.h>

namespace moka::bench {

/// Floating-point operations per second of one thread, for multiply-adds in registers with the instructions that the
/// device uses. Measured once.
double roof();

/// Keeps the shortest time and reports it as microseconds, GFLOP/s and a fraction of the roof of all threads.
class Shortest {
 public:
  void add(double seconds) { best_ = best_ == 0 || seconds < best_ ? seconds : best_; }
  void report(benchmark::State& state, double flops, int threads) const;

 private:
  double best_ = 0;
};

}  // namespace moka::bench
