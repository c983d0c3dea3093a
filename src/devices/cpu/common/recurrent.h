// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/common.h"
#include "devices/cpu/common/stored_rows.h"
#include "devices/cpu/vector/gemm.h"
#include "kernel/parallel.h"
#include "ops/common/recurrent.h"

/// Shared by the kernels of recurrent layers: packed weights of gates, and the division of units among threads.
namespace moka::devices::cpu {

/// nullopt: the identity.
std::optional<Activation> activation_of_gate(const ops::Gate& g);

inline void apply(const std::optional<Activation>& f, float* v, int64_t n) {
  if (f) f->apply(v, v, n);
}

/// The constant weights of all gates, a matrix [gates * units, depth].
class GateWeights {
 public:
  /// Weights of the product with the state, in every step. Weights that are not fp32 are read as they are stored.
  static GateWeights of_state(const MatchCall& m, KernelChoice& c, std::string_view param, int64_t gates);
  /// Weights of the product with x, computed for all steps at once.
  static GateWeights of_input(const MatchCall& m, KernelChoice& c, std::string_view param);

  /// The weights during one run.
  struct Ready {
    const GateWeights* of;
    const float* panels;
    vector::Rows rows;  ///< used if there are no panels
    /// y[r][g * units + u] += x[r] times weight row g * units + u, for gates g in [first_gate, last_gate) and units u
    /// in [from, to), where `from` is a multiple of kUnits. `backwards` selects the order of reading and alternates
    /// from step to step, because the weights that the last step read last are still in the cache. Sums depend neither
    /// on the order nor on the range.
    void add(int64_t first_gate, int64_t last_gate, int64_t from, int64_t to, const float* x, int64_t count, float* y,
             bool backwards) const;
    /// y = x times the transpose of all weights, plus the bias if not null.
    void project(const float* x, const float* bias, int64_t count, float* y, int threads) const;
  };
  Ready ready() const;

  double bytes() const;

 private:
  static GateWeights packed(const MatchCall& m, KernelChoice& c, std::string_view param, int64_t gates,
                            const vector::Gemm& g);

  int64_t gates_ = 1, units_ = 0, depth_ = 0, panel_floats_ = 0;
  const vector::Gemm* gemm_ = nullptr;
  std::shared_ptr<const PackedFloats> packed_;
  std::shared_ptr<StoredRows> stored_;
};

constexpr int64_t kUnits = 64;  // units that stay on one thread: whole vectors and panels

/// How many threads to divide the units of a step among. More threads wait longer for each other after each step.
int threads_for_steps(const MatchCall& m, const GateWeights& w, int64_t units);

/// Calls work(from, to, wait) on each thread with its range of the units. wait() is a barrier for all threads.
template <class Work>
void divide_units(int threads, int64_t units, Work work) {
  kernel::on_each_thread(threads, [&](int thread, int count, kernel::Barrier& barrier) {
    const int64_t blocks = (units + kUnits - 1) / kUnits;
    work(std::min(units, blocks * thread / count * kUnits), std::min(units, blocks * (thread + 1) / count * kUnits),
         [&] { barrier.wait(); });
  });
}

}  // namespace moka::devices::cpu
