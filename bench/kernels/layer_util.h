// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "shapes.h"

namespace moka::bench {

/// The number of copies of the weights, used in turn so that they come from memory as in a net.
size_t copies_of(const Conv& conv);

/// An operation that one kernel of the CPU device runs.
class Layer {
 public:
  /// nullopt: the kernel refuses the operation.
  static std::optional<Layer> make(std::string_view kernel, const Conv& conv, int threads);
  static std::optional<Layer> make(std::string_view kernel, const Product& product, int threads);
  /// Seconds of the kernel alone, without layout conversions. Infinity: the kernel failed.
  double run();

 private:
  using Build = std::function<Result<ir::Value*>(ir::Builder& builder, ir::Value* x, unsigned seed)>;
  static std::optional<Layer> make(std::string_view kernel, size_t copies, const ir::Shape& shape, int threads,
                                   const Build& build);
  struct Copy;
  std::vector<std::shared_ptr<Copy>> copies_;
  size_t next_ = 0;
};

/// Runs the operation as long as `state` asks. `flops` and `bytes` are the counts for one run.
void time_layer(benchmark::State& state, std::optional<Layer> layer, double flops, double bytes, int threads);

}  // namespace moka::bench
