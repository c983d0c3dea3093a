#pragma once

#include <memory>
#include <optional>

#include "devices/cpu/kernels/activations.h"
#include "devices/cpu/kernels/common.h"
#include "devices/cpu/kernels/stored_rows.h"
#include "devices/cpu/vector/gemm.h"
#include "kernel/team.h"
#include "ops/common/recurrent.h"

/// What lstm and gru share.
namespace moka::devices::cpu {

Match match_lstm(const MatchCall& m);
Match match_gru(const MatchCall& m);

/// Nullopt: the identity.
std::optional<Activation> activation_of_gate(const ops::Gate& g);

inline void apply(const std::optional<Activation>& f, float* v, int64_t n) {
  if (f) f->apply(v, v, n);
}

/// The constant weights of all gates, a matrix [gates * units, depth].
class GateWeights {
 public:
  /// Of every step's product with the state: what is not fp32 is read as it is stored.
  static GateWeights of_state(const MatchCall& m, KernelChoice& c, std::string_view param, int64_t gates);
  /// Of the product with all of x.
  static GateWeights of_input(const MatchCall& m, KernelChoice& c, std::string_view param);

  /// In one run.
  struct Ready {
    const GateWeights* of;
    const float* panels;
    vector::Rows rows;  ///< where there are no panels
    /// y[r][g * units + u] += x[r] times that row, for gates g in [first_gate, last_gate) and units u in [from, to), of
    /// which `from` is a multiple of kUnits. Sums do not depend on the range nor on `backwards`, which is the order in
    /// which weights are read: what the step before read last is still in the cache.
    void add(int64_t first_gate, int64_t last_gate, int64_t from, int64_t to, const float* x, int64_t count, float* y,
             bool backwards) const;
    /// y = x times the transpose of all weights, plus bias where there is one.
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

constexpr int64_t kUnits = 64;  // that no two threads share: whole vectors and panels

/// Threads that share the units of each step, where that is worth waiting for each other.
int threads_for_steps(const MatchCall& m, const GateWeights& w, int64_t units);

/// work(from, to, wait) on each of `threads` with its part of the units; wait() returns when all have called it.
template <class Work>
void share_units(int threads, int64_t units, Work work) {
  kernel::together(threads, [&](int me, int team, kernel::Barrier& barrier) {
    const int64_t blocks = (units + kUnits - 1) / kUnits;
    work(std::min(units, blocks * me / team * kUnits), std::min(units, blocks * (me + 1) / team * kUnits),
         [&] { barrier.wait(); });
  });
}

}  // namespace moka::devices::cpu
