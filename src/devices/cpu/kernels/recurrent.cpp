#include "ops/common/recurrent.h"

#include <omp.h>

#include <cmath>
#include <optional>

#include "devices/cpu/kernels/activations.h"
#include "devices/cpu/kernels/families.h"
#include "devices/cpu/kernels/stored_rows.h"
#include "devices/cpu/onednn.h"

namespace moka::devices::cpu {

namespace {

using ops::Direction;
using ops::Gate;
using vector::Binary;
using vector::loops;
using vector::Unary;

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

void apply(const std::optional<Activation>& f, float* v, int64_t n) {
  if (f) f->apply(v, v, n);
}

vector::Rows rows_at(const float* w, int64_t depth) {
  vector::Rows rows;
  rows.data = reinterpret_cast<const std::byte*>(w);
  rows.depth = depth;
  rows.step = depth * static_cast<int64_t>(sizeof(float));
  return rows;
}

/// Weights that each step multiplies a state with: read as stored where that is possible, else in fp32.
struct StepWeights {
  int arg = -1;
  std::shared_ptr<StoredRows> stored;

  static StepWeights of(const MatchCall& m, std::string_view param) {
    StepWeights w{m.call.arg_index(param), nullptr};
    std::string refusal;
    if (m.is_constant(param)) w.stored = StoredRows::of(m, w.arg, false, refusal);
    if (w.stored && w.stored->arranged() > 0) w.stored = nullptr;
    return w;
  }
  vector::Rows rows(const KernelArgs& args, int64_t depth) const {
    return stored ? stored->rows() : rows_at(args.in[static_cast<size_t>(arg)].as<float>(), depth);
  }
  double bytes(const MatchCall& m) const {
    return stored ? stored->bytes()
                  : 4.0 * static_cast<double>(m.call.all_args()[static_cast<size_t>(arg)].type->shape().count());
  }
};

/// y [rows, made] = x [rows, depth] times the transpose of w [made, depth], plus bias.
Status project(const float* x, const float* w, const float* bias, int64_t rows, int64_t depth, int64_t made, float* y,
               int threads) {
  if (rows <= 2) {
    vector::row_loops().product(rows_at(w, depth), 0, made, x, depth, rows, bias, y, made);
    return {};
  }
  for (int64_t r = 0; r < rows; r++) {
    if (bias != nullptr)
      std::copy_n(bias, made, y + r * made);
    else
      std::fill_n(y + r * made, made, 0.0f);
  }
  onednn::ThreadScope scope(threads);
  const dnnl_status_t s = dnnl_sgemm('N', 'T', rows, made, depth, 1, x, depth, w, depth, 1, y, made);
  if (s != dnnl_success) return fail(ErrorCode::internal, "oneDNN sgemm: status ", static_cast<int>(s));
  return {};
}

constexpr int64_t kUnits = 64;        // that no two threads share: whole vectors
constexpr double kStepBytes = 256e3;  // of weights, for each thread that waits for the others after each step

struct Indices {
  int weight_ih = -1, bias = -1, peephole = -1;
  StepWeights weight_hh;
};

KernelChoice choice(const MatchCall& m, std::string_view name, int64_t scratch_floats, double multiply_adds,
                    const std::vector<StepWeights>& weights) {
  KernelChoice c;
  c.kernel = name;
  c.own_threads = true;
  c.scratch = static_cast<size_t>(scratch_floats) * sizeof(float);
  c.cost = cost_of(m, 2 * multiply_adds, traffic(m));
  std::vector<std::shared_ptr<StoredRows>> stored;
  for (const StepWeights& w : weights) {
    if (!w.stored) continue;
    c.in_prepare_only.resize(m.call.all_args().size());
    c.in_prepare_only[static_cast<size_t>(w.arg)] = true;
    stored.push_back(w.stored);
  }
  if (!stored.empty()) {
    c.note = stored[0]->describe();
    c.prepare = [stored](kernel::PrepareContext& context) -> Status {
      for (const auto& rows : stored) MOKA_TRY(rows->prepare(context, true));
      return {};
    };
  }
  return c;
}

Match match_lstm(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "initial_h", "initial_c", "weight_ih", "weight_hh", "bias", "peephole"});
      !why.empty())
    return Match::no(why);
  auto direction = ops::direction_of(m.call, true);
  auto recurrent = ops::gate_of(m.call, "recurrent_activation"), cell = ops::gate_of(m.call, "cell_activation"),
       activation = ops::gate_of(m.call, "activation");
  auto all = m.call.flag("output_sequence");
  if (!direction.ok() || !recurrent.ok() || !cell.ok() || !activation.ok() || !all.ok())
    return Match::no("settings that are not constant");
  float clip = INFINITY;
  if (m.call.has("clip")) {
    auto v = m.call.number("clip");
    if (!v.ok()) return Match::no("a clip that is not constant");
    clip = static_cast<float>(*v);
  }
  const ir::Shape& x = m.call.shape("x");
  const int64_t steps = x[0], batch = x[1], inputs = x[2], hidden = m.call.shape("weight_hh")[1];
  const bool both = *direction == Direction::bidirectional;
  std::vector<std::pair<Indices, bool>> passes{{{m.call.arg_index("weight_ih"), m.call.arg_index("bias"),
                                                 m.call.arg_index("peephole"), StepWeights::of(m, "weight_hh")},
                                                *direction == Direction::reverse}};
  if (both)
    passes.push_back({{m.call.arg_index("weight_ih_back"), m.call.arg_index("bias_back"),
                       m.call.arg_index("peephole_back"), StepWeights::of(m, "weight_hh_back")},
                      true});
  std::vector<StepWeights> weights;
  for (const auto& pass : passes) weights.push_back(pass.first.weight_hh);
  const int in = m.call.arg_index("x"), initial_h = m.call.arg_index("initial_h"),
            initial_c = m.call.arg_index("initial_c");
  const int64_t width = hidden * (both ? 2 : 1), blocks = (hidden + kUnits - 1) / kUnits;
  const int workers = static_cast<int>(std::clamp(
      std::min<double>(weights[0].bytes(m) / kStepBytes, static_cast<double>(blocks)), 1.0, 1.0 * m.threads));
  KernelChoice c = choice(m, "cpu.lstm", steps * batch * 4 * hidden + 4 * hidden,
                          static_cast<double>(passes.size()) * static_cast<double>(steps * batch * 4 * hidden) *
                              static_cast<double>(inputs + hidden),
                          weights);
  c.run = [=, sequence = *all, threads = m.threads, recurrent = activation_of_gate(*recurrent),
           cell = activation_of_gate(*cell),
           activation = activation_of_gate(*activation)](const KernelArgs& args) -> Status {
    auto* gates = reinterpret_cast<float*>(args.scratch);
    float *const states = gates + steps * batch * 4 * hidden, *const s = states + 2 * hidden,
                 *const squashed = s + hidden;
    float *y = args.out[0].as<float>(), *last_h = args.out[1].as<float>(), *last_c = args.out[2].as<float>();
    for (size_t p = 0; p < passes.size(); p++) {
      const auto& [index, reverse] = passes[p];
      vector::Rows w = index.weight_hh.rows(args, hidden);
      w.in_cache = true;
      const float* peep = data_of(args, index.peephole);
      MOKA_TRY(project(data_of(args, in), data_of(args, index.weight_ih), data_of(args, index.bias), steps * batch,
                       inputs, 4 * hidden, gates, threads));
      for (int64_t b = 0; b < batch; b++) {
        const int64_t state = b * width + static_cast<int64_t>(p) * hidden;
        std::copy_n(data_of(args, initial_h) + state, hidden, states);
        std::copy_n(data_of(args, initial_c) + state, hidden, s);
        // Units [from, to) of one step; the state of the step before is in the other half of `states`.
        auto step = [&, reverse = reverse, at_state = state](int64_t t, int64_t from, int64_t to) {
          const int64_t n = to - from, at = reverse ? steps - 1 - t : t;
          const float* before = states + t % 2 * hidden;
          float *h = states + (t + 1) % 2 * hidden + from, *c = s + from, *squash = squashed + from;
          float* z = gates + (at * batch + b) * 4 * hidden;  // input, forget, output, cell
          // Every other step goes backwards: what it reads first is still in the cache.
          const int64_t parts = 4 * ((n + kUnits - 1) / kUnits);
          for (int64_t q = 0; q < parts; q++) {
            const int64_t part = t % 2 == 0 ? q : parts - 1 - q, row = part % 4 * hidden;
            const int64_t first = from + part / 4 * kUnits, last = std::min(to, first + kUnits);
            vector::row_loops().product(w, row + first, row + last, before, hidden, 1, z, z, 0);
          }
          float *i = z + from, *f = i + hidden, *o = f + hidden, *fresh = o + hidden;
          if (peep != nullptr) {
            loops().multiply_add(peep + from, c, i, i, n);
            loops().multiply_add(peep + hidden + from, c, f, f, n);
          }
          apply(recurrent, i, n);
          apply(recurrent, f, n);
          apply(cell, fresh, n);
          loops().binary(Binary::mul, i, 1, fresh, 1, i, n);
          loops().multiply_add(f, c, i, c, n);
          if (clip != INFINITY) loops().unary(Unary::clip, c, c, n, -clip, clip);
          if (peep != nullptr) loops().multiply_add(peep + 2 * hidden + from, c, o, o, n);
          apply(recurrent, o, n);
          std::copy_n(c, n, squash);
          apply(activation, squash, n);
          loops().binary(Binary::mul, o, 1, squash, 1, h, n);
          if (sequence) std::copy_n(h, n, y + ((both ? at : t) * batch) * width + at_state + from);
        };
        if (workers == 1) {  // a team of one would be allocated anew
          for (int64_t t = 0; t < steps; t++) step(t, 0, hidden);
        } else {
#pragma omp parallel num_threads(workers)
          {
            const int64_t me = omp_get_thread_num(), team = omp_get_num_threads();
            const int64_t from = std::min(hidden, blocks * me / team * kUnits),
                          to = std::min(hidden, blocks * (me + 1) / team * kUnits);
            for (int64_t t = 0; t < steps; t++) {
              if (from < to) step(t, from, to);
#pragma omp barrier
            }
          }
        }
        const float* h = states + steps % 2 * hidden;
        if (!sequence) std::copy_n(h, hidden, y + state);
        std::copy_n(h, hidden, last_h + state);
        std::copy_n(s, hidden, last_c + state);
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_gru(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "initial_h", "weight_ih", "weight_hh", "bias"}); !why.empty())
    return Match::no(why);
  auto direction = ops::direction_of(m.call, false);
  auto recurrent = ops::gate_of(m.call, "recurrent_activation"), activation = ops::gate_of(m.call, "activation");
  auto all = m.call.flag("output_sequence");
  if (!direction.ok() || !recurrent.ok() || !activation.ok() || !all.ok())
    return Match::no("settings that are not constant");
  const bool newer = m.call.version().param_index("reset_after") >= 0;
  bool after = false;
  if (newer) {
    auto v = m.call.flag("reset_after");
    if (!v.ok()) return Match::no("settings that are not constant");
    after = *v;
  }
  const ir::Shape& x = m.call.shape("x");
  const int64_t steps = x[0], batch = x[1], inputs = x[2], hidden = m.call.shape("weight_hh")[1];
  const bool reverse = *direction == Direction::reverse;
  const int in = m.call.arg_index("x"), initial_h = m.call.arg_index("initial_h"), ih = m.call.arg_index("weight_ih"),
            bias = m.call.arg_index("bias"), input_bias = newer ? m.call.arg_index("input_bias") : -1;
  const StepWeights weights = StepWeights::of(m, "weight_hh");
  KernelChoice c =
      choice(m, "cpu.gru", steps * batch * 3 * hidden + 5 * hidden,
             static_cast<double>(steps * batch * 3 * hidden) * static_cast<double>(inputs + hidden), {weights});
  c.run = [=, sequence = *all, threads = m.threads, recurrent = activation_of_gate(*recurrent),
           activation = activation_of_gate(*activation)](const KernelArgs& args) -> Status {
    auto* gates = reinterpret_cast<float*>(args.scratch);
    float *h = gates + steps * batch * 3 * hidden, *from_h = h + hidden, *kept = from_h + 3 * hidden;
    vector::Rows w = weights.rows(args, hidden);
    w.in_cache = true;
    const float* b_h = data_of(args, bias);
    auto product = [&](int64_t gate, const float* x, float* to) {
      vector::row_loops().product(w, gate * hidden, (gate + 1) * hidden, x, hidden, 1, b_h, to, 0);
    };
    float *y = args.out[0].as<float>(), *last = args.out[1].as<float>();
    MOKA_TRY(project(data_of(args, in), data_of(args, ih), data_of(args, input_bias), steps * batch, inputs, 3 * hidden,
                     gates, threads));
    for (int64_t b = 0; b < batch; b++) {
      std::copy_n(data_of(args, initial_h) + b * hidden, hidden, h);
      for (int64_t t = 0; t < steps; t++) {
        float* reset = gates + ((reverse ? steps - 1 - t : t) * batch + b) * 3 * hidden;
        float *fresh = reset + hidden, *update = fresh + hidden;
        product(0, h, from_h);
        product(2, h, from_h);
        loops().binary(Binary::add, reset, 1, from_h, 1, reset, hidden);
        loops().binary(Binary::add, update, 1, from_h + 2 * hidden, 1, update, hidden);
        apply(recurrent, reset, hidden);
        apply(recurrent, update, hidden);
        if (after) {
          product(1, h, from_h);
          loops().multiply_add(reset, from_h + hidden, fresh, fresh, hidden);
        } else {
          loops().binary(Binary::mul, reset, 1, h, 1, kept, hidden);
          product(1, kept, from_h);
          loops().binary(Binary::add, fresh, 1, from_h + hidden, 1, fresh, hidden);
        }
        apply(activation, fresh, hidden);
        // (1 - update) * fresh + update * h
        loops().binary(Binary::sub, h, 1, fresh, 1, h, hidden);
        loops().multiply_add(update, h, fresh, h, hidden);
        if (sequence) std::copy_n(h, hidden, y + (t * batch + b) * hidden);
      }
      if (!sequence) std::copy_n(h, hidden, y + b * hidden);
      std::copy_n(h, hidden, last + b * hidden);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

std::span<const KernelDef> recurrent_kernels() {
  static const KernelDef defs[] = {{"cpu.lstm", {"lstm"}, match_lstm}, {"cpu.gru", {"gru"}, match_gru}};
  return defs;
}

}  // namespace moka::devices::cpu
