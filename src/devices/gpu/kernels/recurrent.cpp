// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/recurrent.h"

#include <limits>

#include "devices/gpu/kernels/family.h"
#include "ops/common/packed.h"

namespace moka::devices::gpu {

namespace {

/// Sizes and weights of one direction. Everything but weights is of float32.
struct Layer {
  ops::RecurrentSizes sizes;
  int gates = 1;
  bool all = false, reverse = false;
  int x = 0;
  ProductKernel product{};  // gates of all steps: x times weight_ih, plus bias
  std::shared_ptr<const Uploaded> weight_ih, weight_hh, bias, state_bias, peephole;

  int64_t step_gates() const { return sizes.batch * gates * sizes.hidden; }
  int64_t state() const { return sizes.batch * sizes.hidden; }
  /// Floats: gates of all steps, two states (one is read while the other is written), and two more.
  int64_t scratch() const { return sizes.steps * step_gates() + 4 * state(); }
  Use weights() const { return Use::read(weight_hh->buffer, size_of(product.weights)); }
  int64_t at(int64_t t) const { return reverse ? sizes.steps - 1 - t : t; }
  std::array<int64_t, 3> groups() const {
    const int64_t each = product.card->rows_of_group();
    return {(sizes.hidden + each - 1) / each, sizes.batch, 1};
  }
  /// Whether a step reads the state and its weights in fours.
  bool has_fours(const Use& state) const { return sizes.hidden % 4 == 0 && state.offset % 16 == 0; }
  std::string shader(std::string_view stem) const {
    return cat(lanes_name(*product.card, stem), product.weights == Element::f16 ? "_f32_f16" : "_f32");
  }
};

std::string refusal_of_recurrent(const MatchCall& m, std::initializer_list<std::string_view> params) {
  if (std::string why = refusal_of_floats(m, params); !why.empty()) return why;
  if (m.outputs[0].dtype() != ir::DType::fp32) return cat("element type ", m.outputs[0].dtype());
  if (m.call.shape("x")[0] > kMostSteps) return cat("more than ", kMostSteps, " steps");
  return {};
}

/// Uploads the constants of a direction, whose parameters end with `suffix`.
Result<Layer> layer_of(const MatchCall& m, KernelChoice& c, int gates, std::string_view suffix,
                       std::string_view bias = "bias") {
  Layer l;
  l.product.card = &features_of(m);
  const std::string ih = cat("weight_ih", suffix), hh = cat("weight_hh", suffix);
  const ir::Shape& x = m.call.shape("x");
  l.sizes = {x[0], x[1], x[2], m.call.shape(hh)[1]};
  l.gates = gates;
  l.all = MOKA_TRY(m.call.flag("output_sequence"));
  l.x = m.call.arg_index("x");
  ProductKernel& k = l.product;
  k.weights = weights_element(m, m.call.arg_index(ih), Element::f32);
  if (k.weights != weights_element(m, m.call.arg_index(hh), Element::f32)) k.weights = Element::f32;
  auto uploaded = [&](const std::string& param, Element e) -> std::shared_ptr<const Uploaded> {
    if (m.call.version().param_index(param) < 0 || !m.call.has(param)) return nullptr;
    return uploaded_before(c, m.call.arg_index(param), "rows", m.call.shape(param).count(), e,
                           [](const ir::TensorView& value, float* to) -> Status {
                             ops::load_floats(value, 0, value.count(), to);
                             return {};
                           });
  };
  l.weight_ih = uploaded(ih, k.weights);
  l.weight_hh = uploaded(hh, k.weights);
  l.bias = uploaded(cat(bias, suffix), Element::f32);
  if (bias != "bias") l.state_bias = uploaded("bias", Element::f32);
  l.peephole = uploaded(cat("peephole", suffix), Element::f32);
  Product& p = k.product;
  p.rows = u32(l.sizes.steps * l.sizes.batch);
  p.columns = p.c_row = u32(gates * l.sizes.hidden);
  p.depth = p.a_row = p.b_column = u32(l.sizes.inputs);
  p.b_k = p.bias_column = 1;
  if (std::string why = k.refusal(); !why.empty()) return fail(ErrorCode::unsupported, std::move(why));
  if (std::string why = features_of(m).refusal_of_groups(l.groups()); !why.empty())
    return fail(ErrorCode::unsupported, std::move(why));
  return l;
}

double multiply_adds(const Layer& l) {
  return static_cast<double>(l.sizes.steps * l.step_gates()) * static_cast<double>(l.sizes.inputs + l.sizes.hidden);
}

/// The scratch memory of one direction.
struct Scratch {
  Use gates, h[2], c, kept;

  Scratch(const Layer& l, const Use& all) {
    const int64_t first = l.sizes.steps * l.step_gates(), n = l.state();
    gates = all.part(0, first);
    h[0] = all.part(first, n);
    h[1] = all.part(first + n, n);
    c = all.part(first + 2 * n, n);
    kept = all.part(first + 2 * n, 2 * n);
  }
};

Status record_gates(Recorder& recorder, const Layer& l, const RecordArgs& args, const Use& gates) {
  return l.product.record(recorder,
                          {Use::read(view(args.in, l.x)), Use::read(l.weight_ih->buffer, size_of(l.product.weights)),
                           l.bias ? Use::read(l.bias->buffer, 4) : Use{}, Use{}, gates});
}

struct LstmParams {
  uint32_t hidden, h_row, c_row, h_next_row, c_next_row, y_row;
  float clip;
  std::array<float, 3> a, b;
};

Match match_lstm(const MatchCall& m) {
  if (std::string why = refusal_of_recurrent(m, {"x", "initial_h", "initial_c"}); !why.empty()) return Match::no(why);
  auto direction = ops::direction_of(m.call, true);
  auto recurrent = ops::gate_of(m.call, "recurrent_activation"), cell = ops::gate_of(m.call, "cell_activation"),
       activation = ops::gate_of(m.call, "activation");
  if (!direction.ok() || !recurrent.ok() || !cell.ok() || !activation.ok())
    return Match::no("a parameter that is not constant");
  KernelChoice c = choice_of(m, "lstm", {"x", "initial_h", "initial_c"});
  std::vector<Layer> layers;
  const bool both = *direction == ops::Direction::bidirectional;
  for (std::string_view suffix : {"", "_back"}) {
    if (!suffix.empty() && !both) break;
    auto layer = layer_of(m, c, 4, suffix);
    if (!layer.ok()) return Match::no(layer.error().message());
    layer->reverse = *direction == ops::Direction::reverse || !suffix.empty();
    layers.push_back(std::move(*layer));
  }
  if (layers[0].sizes.steps == 0) return Match::no("no steps");
  const int64_t each = layers[0].scratch();
  c.scratch = layers.size() * static_cast<size_t>(each) * 4;
  set_cost(c, m, static_cast<double>(layers.size()) * multiply_adds(layers[0]));
  c.cost += static_cast<double>(layers[0].sizes.steps) * 4e-6;
  const std::array<Function, 3> f{function_of(*recurrent), function_of(*cell), function_of(*activation)};
  float clip = std::numeric_limits<float>::infinity();
  if (m.call.has("clip")) {
    auto given = m.call.number("clip");
    if (!given.ok()) return Match::no("a parameter that is not constant");
    clip = static_cast<float>(*given);
  }
  const int h0 = m.call.arg_index("initial_h"), c0 = m.call.arg_index("initial_c");
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    const Use all = scratch_of(args, each * static_cast<int64_t>(layers.size()));
    std::vector<Scratch> work;
    for (size_t d = 0; d < layers.size(); d++) {
      work.emplace_back(layers[d], all.part(static_cast<int64_t>(d) * each, each));
      MOKA_TRY(record_gates(recorder, layers[d], args, work[d].gates));
    }
    const ops::RecurrentSizes& s = layers[0].sizes;
    const uint32_t hidden = u32(s.hidden), width = u32(s.hidden) * static_cast<uint32_t>(layers.size());
    for (int64_t t = 0; t < s.steps; t++) {
      // Directions take turns, so that one barrier serves both.
      for (size_t d = 0; d < layers.size(); d++) {
        const Layer& l = layers[d];
        const bool first = t == 0, last = t + 1 == s.steps;
        const int64_t column = static_cast<int64_t>(d) * s.hidden, at = l.at(t);
        auto rows = [&](Use u) { return u.from(column); };
        const Use h = first ? rows(Use::read(view(args.in, h0))) : work[d].h[t % 2].to_read();
        const Use before = first ? rows(Use::read(view(args.in, c0))) : work[d].c.to_read();
        const Use h_next = last ? rows(Use::write(args.out[1])) : work[d].h[(t + 1) % 2];
        const Use c_next = last ? rows(Use::write(args.out[2])) : work[d].c;
        const uint32_t row = first ? width : hidden, next_row = last ? width : hidden;
        const int64_t y_row = l.all ? (layers.size() == 2 ? at : t) : 0;
        const Use y = Use::write(args.out[0]).part(y_row * s.batch * width, s.batch * width).from(column);
        MOKA_TRY(recorder_of(recorder).dispatch(
            l.shader("lstm"),
            {f[0].number, f[1].number, f[2].number, l.peephole != nullptr, l.all || last, l.has_fours(h)},
            {work[d].gates.part(at * l.step_gates(), l.step_gates()).to_read(), l.weights(),
             l.peephole ? Use::read(l.peephole->buffer, 4) : l.weights().unused(), h, before, h_next, c_next, y},
            LstmParams{
                hidden, row, row, next_row, next_row, width, clip, {f[0].a, f[1].a, f[2].a}, {f[0].b, f[1].b, f[2].b}},
            groups_of(l.groups())));
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

struct StepParams {
  uint32_t hidden;
  std::array<float, 2> a, b;
};

/// gru and rnn: `steps` are what each step dispatches.
Match match_steps(const MatchCall& m, std::string_view kernel, int gates, std::vector<uint32_t> steps,
                  std::string_view recurrent_activation, std::string_view bias) {
  if (std::string why = refusal_of_recurrent(m, {"x", "initial_h"}); !why.empty()) return Match::no(why);
  auto direction = ops::direction_of(m.call, false);
  auto recurrent = ops::gate_of(m.call, recurrent_activation), activation = ops::gate_of(m.call, "activation");
  if (!direction.ok() || !recurrent.ok() || !activation.ok()) return Match::no("a parameter that is not constant");
  KernelChoice c = choice_of(m, kernel, {"x", "initial_h"});
  auto layer = layer_of(m, c, gates, "", bias);
  if (!layer.ok()) return Match::no(layer.error().message());
  layer->reverse = *direction == ops::Direction::reverse;
  if (layer->sizes.steps == 0) return Match::no("no steps");
  c.scratch = static_cast<size_t>(layer->scratch()) * 4;
  set_cost(c, m, multiply_adds(*layer));
  c.cost += static_cast<double>(layer->sizes.steps) * static_cast<double>(steps.size()) * 4e-6;
  const std::array<Function, 2> f{function_of(*recurrent), function_of(*activation)};
  const int h0 = m.call.arg_index("initial_h");
  c.record = [=, l = *layer](Recorder& recorder, const RecordArgs& args) -> Status {
    const Scratch work(l, scratch_of(args, l.scratch()));
    MOKA_TRY(record_gates(recorder, l, args, work.gates));
    for (int64_t t = 0; t < l.sizes.steps; t++) {
      const bool last = t + 1 == l.sizes.steps;
      const Use h = t == 0 ? Use::read(view(args.in, h0)) : work.h[t % 2].to_read();
      const Use h_next = last ? Use::write(args.out[1]) : work.h[(t + 1) % 2];
      const Use y = Use::write(args.out[0]).part(l.all ? t * l.state() : 0, l.state());
      for (uint32_t step : steps) {
        const bool ends = step != RECURRENT_GATES;
        Use kept = work.kept;
        kept.written = !ends;
        MOKA_TRY(recorder_of(recorder).dispatch(
            l.shader("recurrent"),
            {step, f[0].number, f[1].number, l.state_bias != nullptr, l.all || last,
             l.has_fours(h) && l.has_fours(kept)},
            {work.gates.part(l.at(t) * l.step_gates(), l.step_gates()).to_read(), l.weights(),
             l.state_bias ? Use::read(l.state_bias->buffer, 4) : l.weights().unused(), h, kept,
             ends ? h_next : h_next.to_read(), ends ? y : y.to_read()},
            StepParams{u32(l.sizes.hidden), {f[0].a, f[1].a}, {f[0].b, f[1].b}}, groups_of(l.groups())));
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_gru(const MatchCall& m) {
  bool after = false;
  if (m.call.version().param_index("reset_after") >= 0) {
    auto given = m.call.flag("reset_after");
    if (!given.ok()) return Match::no("a parameter that is not constant");
    after = *given;
  }
  return match_steps(
      m, "gru", 3, after ? std::vector<uint32_t>{RECURRENT_GRU} : std::vector<uint32_t>{RECURRENT_GATES, RECURRENT_NEW},
      "recurrent_activation", "input_bias");
}

Match match_rnn(const MatchCall& m) { return match_steps(m, "rnn", 1, {RECURRENT_PLAIN}, "activation", "bias"); }

}  // namespace

KernelFamily family_recurrent() {
  static const KernelDef defs[] = {
      {"lstm", {"lstm"}, match_lstm}, {"gru", {"gru"}, match_gru}, {"rnn", {"rnn"}, match_rnn}};
  return {defs};
}

}  // namespace moka::devices::gpu
