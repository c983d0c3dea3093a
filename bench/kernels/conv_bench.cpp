// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <omp.h>

#include <chrono>
#include <dnnl.hpp>
#include <string>
#include <vector>

#include "layer_util.h"
#include "roof.h"

namespace moka::bench {
namespace {

void layer(benchmark::State& state, const char* kernel, const Conv& conv, int threads) {
  time_layer(state, Layer::make(kernel, conv, threads), conv.flops(), conv.bytes(), threads);
}

/// oneDNN's Winograd algorithm, which the device does not use, in the layouts that oneDNN prefers.
void of_onednn(benchmark::State& state, const Conv& conv, int threads) {
  using dnnl::memory;
  omp_set_num_threads(threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto any = [](memory::dims d) { return memory::desc(d, memory::data_type::f32, memory::format_tag::any); };
  try {
    dnnl::post_ops relu;
    relu.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(relu);
    const dnnl::convolution_forward::desc d(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_winograd,
        any({1, conv.in, conv.size, conv.size}), any({conv.out, conv.in, conv.taps[0], conv.taps[1]}), any({conv.out}),
        any({1, conv.out, conv.made(0), conv.made(1)}), {1, 1}, {conv.pad[0], conv.pad[1]}, {conv.pad[0], conv.pad[1]});
    const dnnl::convolution_forward::primitive_desc pd(d, attributes, engine);
    memory x(pd.src_desc(), engine), b(pd.bias_desc(), engine);
    std::vector<memory> weights, results;
    for (size_t i = 0; i < copies_of(conv); i++) {
      weights.emplace_back(pd.weights_desc(), engine);
      results.emplace_back(pd.dst_desc(), engine);
    }
    auto fill = [](const memory& m) {
      auto* to = static_cast<float*>(m.get_data_handle());
      for (size_t i = 0; i < m.get_desc().get_size() / sizeof(float); i++)
        to[i] = static_cast<float>(i % 17) * 0.01f - 0.08f;
    };
    fill(x);
    fill(b);
    for (const memory& w : weights) fill(w);
    size_t next = 0;
    const dnnl::convolution_forward primitive(pd);
    Shortest shortest;
    for (auto _ : state) {
      next = (next + 1) % weights.size();
      const auto start = std::chrono::steady_clock::now();
      primitive.execute(
          stream,
          {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights[next]}, {DNNL_ARG_BIAS, b}, {DNNL_ARG_DST, results[next]}});
      stream.wait();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      state.SetIterationTime(seconds);
      shortest.add(seconds);
    }
    shortest.report(state, conv.flops(), threads);
    state.SetLabel(pd.impl_info_str());
  } catch (const dnnl::error& e) {
    state.SkipWithError(e.message);
  }
}

}  // namespace

void add_convolutions(int threads) {
  for (const Conv& c : kConvolutions) {
    const std::string shape = "conv/" + c.name() + "/";
    std::vector<const char*> kernels = c.rivals();
    kernels.insert(kernels.begin(), c.own());
    for (const char* kernel : kernels)
      benchmark::RegisterBenchmark((shape + kernel).c_str(), layer, kernel, c, threads)
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    if (c.taps[0] != 3 || c.taps[1] != 3 || c.stride != 1 || c.groups != 1 || c.over != Over::image) continue;
    benchmark::RegisterBenchmark((shape + "winograd of oneDNN").c_str(), of_onednn, c, threads)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace moka::bench
