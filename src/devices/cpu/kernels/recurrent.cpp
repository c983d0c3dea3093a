#include "ops/common/recurrent.h"

#include <cmath>
#include <optional>

#include "devices/cpu/kernels/activations.h"
#include "devices/cpu/kernels/families.h"
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

/// y [rows, made] = x [rows, depth] times the transpose of w [made, depth], plus bias.
Status project(const float* x, const float* w, const float* bias, int64_t rows, int64_t depth, int64_t made, float* y,
               int threads) {
  for (int64_t r = 0; r < rows; r++) {
    if (bias != nullptr)
      std::copy_n(bias, made, y + r * made);
    else
      std::fill_n(y + r * made, made, 0.0f);
  }
  if (rows < 4) {
    for (int64_t r = 0; r < rows; r++) loops().add_product(w, made, depth, x + r * depth, y + r * made);
    return {};
  }
  onednn::ThreadScope scope(threads);
  const dnnl_status_t s = dnnl_sgemm('N', 'T', rows, made, depth, 1, x, depth, w, depth, 1, y, made);
  if (s != dnnl_success) return fail(ErrorCode::internal, "oneDNN sgemm: status ", static_cast<int>(s));
  return {};
}

struct Indices {
  int weight_ih = -1, weight_hh = -1, bias = -1, peephole = -1;
};

int index_of(const MatchCall& m, std::string_view p) { return m.call.has(p) ? m.call.arg_index(p) : -1; }
const float* data_of(const KernelArgs& args, int i) {
  return i < 0 ? nullptr : args.in[static_cast<size_t>(i)].as<float>();
}

KernelChoice choice(const MatchCall& m, std::string_view name, int64_t scratch_floats, double multiply_adds) {
  KernelChoice c;
  c.kernel = name;
  c.own_threads = true;
  c.scratch = static_cast<size_t>(scratch_floats) * sizeof(float);
  c.cost = cost_of(m, 2 * multiply_adds, traffic(m));
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
  std::vector<std::pair<Indices, bool>> passes{
      {{index_of(m, "weight_ih"), index_of(m, "weight_hh"), index_of(m, "bias"), index_of(m, "peephole")},
       *direction == Direction::reverse}};
  if (both)
    passes.push_back({{index_of(m, "weight_ih_back"), index_of(m, "weight_hh_back"), index_of(m, "bias_back"),
                       index_of(m, "peephole_back")},
                      true});
  const int in = m.call.arg_index("x"), initial_h = m.call.arg_index("initial_h"),
            initial_c = m.call.arg_index("initial_c");
  const int64_t width = hidden * (both ? 2 : 1);
  KernelChoice c = choice(m, "cpu.lstm", steps * batch * 4 * hidden + 3 * hidden,
                          static_cast<double>(passes.size()) * static_cast<double>(steps * batch * 4 * hidden) *
                              static_cast<double>(inputs + hidden));
  c.run = [=, sequence = *all, threads = m.threads, recurrent = activation_of_gate(*recurrent),
           cell = activation_of_gate(*cell),
           activation = activation_of_gate(*activation)](const KernelArgs& args) -> Status {
    auto* gates = reinterpret_cast<float*>(args.scratch);
    float *h = gates + steps * batch * 4 * hidden, *s = h + hidden, *squashed = s + hidden;
    float *y = args.out[0].as<float>(), *last_h = args.out[1].as<float>(), *last_c = args.out[2].as<float>();
    for (size_t p = 0; p < passes.size(); p++) {
      const auto& [index, reverse] = passes[p];
      const float *w = data_of(args, index.weight_hh), *peep = data_of(args, index.peephole);
      MOKA_TRY(project(data_of(args, in), data_of(args, index.weight_ih), data_of(args, index.bias), steps * batch,
                       inputs, 4 * hidden, gates, threads));
      for (int64_t b = 0; b < batch; b++) {
        const int64_t state = b * width + static_cast<int64_t>(p) * hidden;
        std::copy_n(data_of(args, initial_h) + state, hidden, h);
        std::copy_n(data_of(args, initial_c) + state, hidden, s);
        for (int64_t t = 0; t < steps; t++) {
          const int64_t at = reverse ? steps - 1 - t : t;
          float* z = gates + (at * batch + b) * 4 * hidden;  // input, forget, output, cell
          loops().add_product(w, 4 * hidden, hidden, h, z);
          if (peep != nullptr) {
            loops().multiply_add(peep, s, z, z, hidden);
            loops().multiply_add(peep + hidden, s, z + hidden, z + hidden, hidden);
          }
          apply(recurrent, z, 2 * hidden);
          apply(cell, z + 3 * hidden, hidden);
          loops().binary(Binary::mul, z, 1, z + 3 * hidden, 1, z, hidden);
          loops().multiply_add(z + hidden, s, z, s, hidden);
          if (clip != INFINITY) loops().unary(Unary::clip, s, s, hidden, -clip, clip);
          if (peep != nullptr) loops().multiply_add(peep + 2 * hidden, s, z + 2 * hidden, z + 2 * hidden, hidden);
          apply(recurrent, z + 2 * hidden, hidden);
          std::copy_n(s, hidden, squashed);
          apply(activation, squashed, hidden);
          loops().binary(Binary::mul, z + 2 * hidden, 1, squashed, 1, h, hidden);
          if (sequence) std::copy_n(h, hidden, y + ((both ? at : t) * batch) * width + state);
        }
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
            hh = m.call.arg_index("weight_hh"), bias = index_of(m, "bias"),
            input_bias = newer ? index_of(m, "input_bias") : -1;
  KernelChoice c = choice(m, "cpu.gru", steps * batch * 3 * hidden + 5 * hidden,
                          static_cast<double>(steps * batch * 3 * hidden) * static_cast<double>(inputs + hidden));
  c.run = [=, sequence = *all, threads = m.threads, recurrent = activation_of_gate(*recurrent),
           activation = activation_of_gate(*activation)](const KernelArgs& args) -> Status {
    auto* gates = reinterpret_cast<float*>(args.scratch);
    float *h = gates + steps * batch * 3 * hidden, *from_h = h + hidden, *kept = from_h + 3 * hidden;
    const float *w = data_of(args, hh), *b_h = data_of(args, bias);
    float *y = args.out[0].as<float>(), *last = args.out[1].as<float>();
    MOKA_TRY(project(data_of(args, in), data_of(args, ih), data_of(args, input_bias), steps * batch, inputs, 3 * hidden,
                     gates, threads));
    for (int64_t b = 0; b < batch; b++) {
      std::copy_n(data_of(args, initial_h) + b * hidden, hidden, h);
      for (int64_t t = 0; t < steps; t++) {
        float* reset = gates + ((reverse ? steps - 1 - t : t) * batch + b) * 3 * hidden;
        float *fresh = reset + hidden, *update = fresh + hidden;
        if (b_h != nullptr)
          std::copy_n(b_h, 3 * hidden, from_h);
        else
          std::fill_n(from_h, 3 * hidden, 0.0f);
        loops().add_product(w, hidden, hidden, h, from_h);
        loops().add_product(w + 2 * hidden * hidden, hidden, hidden, h, from_h + 2 * hidden);
        loops().binary(Binary::add, reset, 1, from_h, 1, reset, hidden);
        loops().binary(Binary::add, update, 1, from_h + 2 * hidden, 1, update, hidden);
        apply(recurrent, reset, hidden);
        apply(recurrent, update, hidden);
        if (after) {
          loops().add_product(w + hidden * hidden, hidden, hidden, h, from_h + hidden);
          loops().multiply_add(reset, from_h + hidden, fresh, fresh, hidden);
        } else {
          loops().binary(Binary::mul, reset, 1, h, 1, kept, hidden);
          loops().add_product(w + hidden * hidden, hidden, hidden, kept, from_h + hidden);
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
