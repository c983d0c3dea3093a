#include <benchmark/benchmark.h>
#include <omp.h>

#include <cstdlib>

#include "roof.h"

namespace moka::bench {
void add_convolutions(int threads);
void add_products();
}  // namespace moka::bench

/// OMP_NUM_THREADS sets the number of threads for convolutions; the default is 1.
int main(int argc, char** argv) {
  const int threads = std::getenv("OMP_NUM_THREADS") != nullptr ? omp_get_max_threads() : 1;
  omp_set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  moka::bench::add_convolutions(threads);
  moka::bench::add_products();
  benchmark::AddCustomContext("threads", std::to_string(threads));
  benchmark::AddCustomContext("roof of a thread, GFLOP/s", std::to_string(moka::bench::roof() * 1e-9));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
