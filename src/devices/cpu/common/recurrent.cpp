// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/recurrent.h"

namespace moka::devices::cpu {

using ops::Gate;
using vector::Gemm;
using vector::Unary;

namespace {

constexpr double kStepBytes = 256e3;            // weights per thread that make up for waiting after each step
constexpr int64_t kRows = 128, kColumns = 192;  // of one tile of the product with x
constexpr int64_t kPart = 2 * kUnits;           // units of a gate whose weights are read in order

}  // namespace

std::optional<Activation> activation_of_gate(const Gate& g) {
  const auto alpha = static_cast<float>(g.alpha), beta = static_cast<float>(g.beta);
  switch (g.f) {
    case Gate::Function::tanh: return Activation{Unary::tanh};
    case Gate::Function::scaled_tanh:
      return g.alpha == 1 && g.beta == 1 ? Activation{Unary::tanh} : Activation{Unary::scaled_tanh, alpha, beta};
    case Gate::Function::sigmoid: return Activation{Unary::sigmoid};
    case Gate::Function::hard_sigmoid: return Activation{Unary::sigmoid_hard, alpha, beta};
    case Gate::Function::relu: return Activation{Unary::relu};
    case Gate::Function::linear:
      if (g.alpha == 1 && g.beta == 0) return std::nullopt;
      return Activation{Unary::linear, alpha, beta};
  }
  return std::nullopt;
}

GateWeights GateWeights::of_state(const MatchCall& m, KernelChoice& c, std::string_view param, int64_t gates) {
  const int arg = m.call.arg_index(param);
  std::string refusal;
  auto stored = StoredRows::of(m, arg, false, refusal);
  if (!stored || stored->arranged() > 0 || stored->encoding() == vector::Encoding::fp32)
    return packed(m, c, param, gates, vector::gemm());
  GateWeights w;
  w.gates_ = gates;
  w.units_ = stored->count() / gates;
  w.depth_ = stored->depth();
  w.stored_ = stored;
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(arg)] = true;
  c.note = stored->describe();
  c.prepare = [stored, before = std::move(c.prepare)](kernel::PrepareContext& context) -> Status {
    if (before) MOKA_TRY(before(context));
    return stored->prepare(context, true);
  };
  return w;
}

GateWeights GateWeights::of_input(const MatchCall& m, KernelChoice& c, std::string_view param) {
  return packed(m, c, param, 1, vector::gemm_for(m.call.shape(param)[0]));
}

GateWeights GateWeights::packed(const MatchCall& m, KernelChoice& c, std::string_view param, int64_t gates,
                                const Gemm& g) {
  const ir::Shape& shape = m.call.shape(param);
  GateWeights w;
  const int64_t units = shape[0] / gates, depth = shape[1];
  w.gates_ = gates;
  w.units_ = units;
  w.depth_ = depth;
  w.panel_floats_ = vector::packed_count(g, depth, units);
  w.gemm_ = &g;
  w.packed_ =
      packed_before(c, m, m.call.arg_index(param), cat("panels of ", g.panel, " in ", g.lanes, " of ", gates, " gates"),
                    gates * w.panel_floats_, [=, &g, step = w.panel_floats_](const float* value, float* to) {
                      for (int64_t i = 0; i < gates; i++)
                        g.pack(value + i * units * depth, 1, depth, depth, units, to + i * step, nullptr);
                    });
  return w;
}

double GateWeights::bytes() const {
  return stored_ ? stored_->bytes() : 4.0 * static_cast<double>(gates_ * units_ * depth_);
}

GateWeights::Ready GateWeights::ready() const {
  if (!stored_) return {this, packed_->data(), {}};
  vector::Rows rows = stored_->rows();
  rows.in_cache = true;
  return {this, nullptr, rows};
}

void GateWeights::Ready::add(int64_t first_gate, int64_t last_gate, int64_t from, int64_t to, const float* x,
                             int64_t count, float* y, bool backwards) const {
  const int64_t units = of->units_, depth = of->depth_, step = of->gates_ * units, gates = last_gate - first_gate;
  const int64_t parts = gates * ((to - from + kPart - 1) / kPart);
  for (int64_t q = 0; q < parts; q++) {
    const int64_t part = backwards ? parts - 1 - q : q, gate = first_gate + part % gates;
    const int64_t first = from + part / gates * kPart, last = std::min(to, first + kPart);
    if (panels != nullptr) {
      of->gemm_->multiply(x, depth, panels + gate * of->panel_floats_ + first * depth, count, last - first, depth,
                          y + gate * units + first, step, nullptr, true);
      continue;
    }
    for (int64_t r = 0; r < count; r++)
      vector::row_loops().product(rows, gate * units + first, gate * units + last, x + r * depth, depth, 1,
                                  y + r * step, y + r * step, 0);
  }
}

void GateWeights::Ready::project(const float* x, const float* bias, int64_t count, float* y, int threads) const {
  const int64_t made = of->units_, depth = of->depth_;
  const int64_t blocks = (count + kRows - 1) / kRows, chunks = (made + kColumns - 1) / kColumns;
  auto chunk = [&](int64_t t) {
    const int64_t first = count * (t / chunks) / blocks, end = count * (t / chunks + 1) / blocks,
                  column = t % chunks * kColumns, n = std::min(kColumns, made - column);
    of->gemm_->multiply(x + first * depth, depth, panels + column * depth, end - first, n, depth,
                        y + first * made + column, made, bias == nullptr ? nullptr : bias + column, false);
  };
  kernel::parallel_for(threads, blocks * chunks, [&](int64_t t, int) { chunk(t); });
}

int threads_for_steps(const MatchCall& m, const GateWeights& w, int64_t units) {
  const int64_t blocks = (units + kUnits - 1) / kUnits;
  return static_cast<int>(
      std::clamp(std::min(w.bytes() / kStepBytes, static_cast<double>(blocks)), 1.0, 1.0 * m.threads));
}

}  // namespace moka::devices::cpu
