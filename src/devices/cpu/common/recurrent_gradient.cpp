// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/recurrent_gradient.h"

#include "ops/common/recurrent_gradient.h"

namespace moka::devices::cpu {

using ops::Gate;
using vector::Binary;
using vector::loops;
using vector::Unary;

namespace {

constexpr int64_t kPiece = 512;

}  // namespace

void multiply_by_slope(const Gate& g, const float* y, const float* d, float* to, int64_t n) {
  float slope[kPiece];
  constexpr float one = 1;
  for (int64_t at = 0; at < n; at += kPiece, y += kPiece, d += kPiece, to += kPiece) {
    const int64_t piece = std::min(kPiece, n - at);
    switch (g.f) {
      case Gate::Function::tanh:
        loops().unary(Unary::square, y, slope, piece, 0, 0);
        loops().binary(Binary::sub, &one, 0, slope, 1, slope, piece);
        break;
      case Gate::Function::sigmoid:
        loops().binary(Binary::sub, &one, 0, y, 1, slope, piece);
        loops().binary(Binary::mul, slope, 1, y, 1, slope, piece);
        break;
      default:
        for (int64_t i = 0; i < piece; i++)
          slope[i] = static_cast<float>(ops::gate_slope(g, static_cast<double>(y[i])));
    }
    loops().binary(Binary::mul, d, 1, slope, 1, to, piece);
  }
}

StepWeights::StepWeights(int64_t gates, int64_t hidden, int64_t groups)
    : gates_(gates), hidden_(hidden), groups_(groups), gemm_(&vector::gemm_for(hidden)) {
  floats_ahead_ = vector::packed_count(*gemm_, hidden, hidden);
  floats_back_ = vector::packed_count(*gemm_, gates / groups * hidden, hidden);
}

void StepWeights::pack(const float* weights, float* to) const {
  for (int64_t g = 0; g < gates_; g++)
    gemm_->pack(weights + g * hidden_ * hidden_, 1, hidden_, hidden_, hidden_, to + g * floats_ahead_, nullptr);
}

void StepWeights::pack_transposed(const float* weights, float* to) const {
  const int64_t depth = gates_ / groups_ * hidden_;
  for (int64_t g = 0; g < groups_; g++)
    gemm_->pack(weights + g * depth * hidden_, hidden_, 1, depth, hidden_, to + g * floats_back_, nullptr);
}

void StepWeights::add_gates(const float* packed, const float* h, int64_t rows, int64_t first, int64_t last,
                            float* z) const {
  for (int64_t g = first; g < last; g++)
    gemm_->multiply(h, hidden_, packed + g * floats_ahead_, rows, hidden_, hidden_, z + g * hidden_, gates_ * hidden_,
                    nullptr, true);
}

void StepWeights::to_state(const float* packed, int64_t group, const float* dz, int64_t rows, float* dh,
                           bool add) const {
  const int64_t depth = gates_ / groups_ * hidden_;
  gemm_->multiply(dz + group * depth, gates_ * hidden_, packed + group * floats_back_, rows, hidden_, depth, dh,
                  hidden_, nullptr, add);
}

void divide_batch(int threads, int64_t batch, kernel::FunctionRef<void(int64_t first, int64_t rows)> work) {
  const int64_t parts = std::min<int64_t>(threads, batch);
  kernel::parallel_for(threads, parts, [&](int64_t i, int) {
    const int64_t first = batch * i / parts;
    work(first, batch * (i + 1) / parts - first);
  });
}

}  // namespace moka::devices::cpu
