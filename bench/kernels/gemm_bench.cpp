// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <chrono>
#include <dnnl.hpp>
#include <string>

#include "devices/cpu/vector/gemm.h"
#include "layer_util.h"
#include "roof.h"
#include "shapes.h"

namespace moka::bench {
namespace {

using devices::cpu::vector::gemm;
using devices::cpu::vector::packed_count;

constexpr int64_t kManyRows = 64;  // number of rows for which kernels of linear compete

/// On one thread. Moka's product reads packed columns.
void product(benchmark::State& state, const Product& p, bool own) {
  auto values = [](int64_t n) {
    std::vector<float> v(static_cast<size_t>(n));
    for (size_t i = 0; i < v.size(); i++) v[i] = static_cast<float>(i % 23) * 0.05f - 0.5f;
    return v;
  };
  const std::vector<float> a = values(p.rows * p.depth), b = values(p.depth * p.columns);
  std::vector<float> c(static_cast<size_t>(p.rows * p.columns)),
      packed(static_cast<size_t>(packed_count(gemm(), p.depth, p.columns)));
  gemm().pack(b.data(), p.columns, 1, p.depth, p.columns, packed.data(), nullptr);
  // so many that the time of reading the clock is negligible
  const int64_t inner = 1 + static_cast<int64_t>(1e6 / p.flops());
  Shortest shortest;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < inner; i++) {
      if (own)
        gemm().multiply(a.data(), p.depth, packed.data(), p.rows, p.columns, p.depth, c.data(), p.columns, nullptr,
                        false);
      else
        dnnl_sgemm('N', 'N', p.rows, p.columns, p.depth, 1, a.data(), p.depth, b.data(), p.columns, 0, c.data(),
                   p.columns);
      benchmark::ClobberMemory();
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(inner);
    state.SetIterationTime(seconds);
    shortest.add(seconds);
  }
  shortest.report(state, p.flops(), 1);
}

/// With weights that come from memory, as in a net.
void layer(benchmark::State& state, const Product& p, const char* kernel) {
  time_layer(state, Layer::make(kernel, p, 1), p.flops(), p.bytes(), 1);
}

}  // namespace

void add_products() {
  for (const Product& p : kProducts) {
    const std::string name = cat("gemm/", p.rows, "_", p.columns, "_", p.depth);
    auto add = [](benchmark::internal::Benchmark* b) { b->UseManualTime()->Unit(benchmark::kMicrosecond); };
    for (bool own : {true, false})
      add(benchmark::RegisterBenchmark(cat(name, own ? "/own" : "/onednn").c_str(), product, p, own));
    if (p.rows < kManyRows) continue;
    for (const char* kernel : {"cpu.linear.gemm", "cpu.linear.strassen"})
      add(benchmark::RegisterBenchmark(cat(name, "/", kernel).c_str(), layer, p, kernel));
  }
}

}  // namespace moka::bench
