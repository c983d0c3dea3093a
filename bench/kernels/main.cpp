// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <omp.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "roof.h"

namespace moka::bench {
void add_convolutions(int threads);
void add_products();
}  // namespace moka::bench

/// OMP_NUM_THREADS sets the number of threads for convolutions; the default is 1. With --roofs it only prints the roofs
/// of one thread as JSON, in operations and bytes per second.
int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--roofs") {
    std::printf("{\"flops\": %.6g, \"bytes\": %.6g}\n", moka::bench::roof(), moka::bench::memory_roof());
    return 0;
  }
  const int threads = std::getenv("OMP_NUM_THREADS") != nullptr ? omp_get_max_threads() : 1;
  omp_set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  moka::bench::add_convolutions(threads);
  moka::bench::add_products();
  benchmark::AddCustomContext("threads", std::to_string(threads));
  benchmark::AddCustomContext("roof of a thread, GFLOP/s", std::to_string(moka::bench::roof() * 1e-9));
  benchmark::AddCustomContext("memory of a thread, GB/s", std::to_string(moka::bench::memory_roof() * 1e-9));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
