// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "devices/cpu/common/recurrent.h"

/// Shared by the kernels that walk recurrent layers backwards. They divide the rows of the batch among threads, because
/// these do not depend on each other.
namespace moka::devices::cpu {

/// to[i] = d[i] times the slope of the activation where its value is y[i]. `to` may be d, but not y.
void multiply_by_slope(const ops::Gate& g, const float* y, const float* d, float* to, int64_t n);

/// Weights [gates * hidden, hidden], which may change from run to run, and the products of the steps with them.
class StepWeights {
 public:
  /// `groups`: into how many equal parts the gates are divided for products with the transposed weights.
  StepWeights(int64_t gates, int64_t hidden, int64_t groups);
  /// Floats of the packed weights.
  int64_t floats() const { return gates_ * floats_ahead_; }
  int64_t transposed_floats() const { return groups_ * floats_back_; }
  void pack(const float* weights, float* to) const;
  void pack_transposed(const float* weights, float* to) const;

  /// z [rows, gates * hidden] += h [rows, hidden] times the weights of each gate in [first, last).
  void add_gates(const float* packed, const float* h, int64_t rows, int64_t first, int64_t last, float* z) const;
  /// dh [rows, hidden] = dz [rows, gates * hidden] times the transposed weights of a group; or it is added.
  void to_state(const float* packed, int64_t group, const float* dz, int64_t rows, float* dh, bool add) const;

 private:
  int64_t gates_, hidden_, groups_, floats_ahead_, floats_back_;
  const vector::Gemm* gemm_;
};

/// The kernel that runs a copy of `back`, which has `threads` and run(args), with that much scratch.
template <class Back>
kernel::Match gradient_kernel(const kernel::MatchCall& m, std::string_view name, Back back, double flops,
                              size_t scratch) {
  back.threads = with_threads_for(m, flops).threads;
  kernel::KernelChoice c;
  c.kernel = name;
  c.internally_parallel = true;
  c.scratch = scratch;
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [back = std::move(back)](const kernel::KernelArgs& args) { return back.run(args); };
  return kernel::Match::yes(std::move(c));
}

/// Calls work(first, rows) for rows of the batch.
void divide_batch(int threads, int64_t batch, kernel::FunctionRef<void(int64_t first, int64_t rows)> work);

}  // namespace moka::devices::cpu
