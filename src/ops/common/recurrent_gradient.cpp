// SPDX-License-Identifier: Apache-2.0
#include "ops/common/recurrent_gradient.h"

#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"

namespace moka::ops {

double gate_slope(const Gate& g, double y) {
  switch (g.f) {
    case Gate::Function::tanh: return 1 - y * y;
    case Gate::Function::scaled_tanh: return g.alpha == 0 ? 0 : g.beta * (g.alpha - y * y / g.alpha);
    case Gate::Function::sigmoid: return y * (1 - y);
    case Gate::Function::hard_sigmoid: return y > 0 && y < 1 ? g.alpha : 0;
    case Gate::Function::relu: return y > 0 ? 1 : 0;
    case Gate::Function::linear: return g.alpha;
  }
  return 0;
}

OpBuilder recurrent_gradient_builder(std::string name, std::string doc) {
  OpBuilder b(std::move(name), std::move(doc), Opset::ios13);
  b.type_var("T", kF16F32)
      .in("x_gates", "T")
      .in("weight_hh", "T")
      .in("initial_h", "T")
      .in("y", "T")
      .optional()
      .in("dy", "T")
      .optional()
      .in("dh", "T");
  return b;
}

Result<RecurrentSizes> recurrent_gradient_sizes(const OpCall& call, int gates, bool& unranked) {
  RecurrentSizes s;
  unranked = any_unranked(call, {"x_gates", "weight_hh"});
  if (unranked) return s;
  const Shape &x = call.shape("x_gates"), &w = call.shape("weight_hh");
  if (x.rank() != 3) return call.error("x_gates", "rank 3, [steps, batch, gates]", cat(x));
  if (w.rank() != 2) return call.error("weight_hh", "rank 2", cat(w));
  s.steps = x[0];
  s.batch = x[1];
  s.hidden = w[1];
  if (s.hidden > INT32_MAX) return call.error("weight_hh", cat("at most ", INT32_MAX, " hidden units"), cat(w));
  const int64_t made = s.hidden < 0 ? kAnyDim : gates * s.hidden;
  MOKA_TRY(check_shape(call, "x_gates", {s.steps, s.batch, made}));
  MOKA_TRY(check_shape(call, "weight_hh", {made, s.hidden}));
  for (const char* p : {"initial_h", "dh"}) MOKA_TRY(check_shape(call, p, {s.batch, s.hidden}));
  for (const char* p : {"y", "dy"})
    if (call.has(p)) MOKA_TRY(check_shape(call, p, {s.steps, s.batch, s.hidden}));
  return s;
}

std::vector<double> doubles_of(const TensorView& t) {
  std::vector<double> out(static_cast<size_t>(t.count()));
  load_run(t, 0, 1, t.count(), out.data());
  return out;
}

void store_doubles(const TensorView& t, const std::vector<double>& from) { store_run(t, 0, 1, t.count(), from.data()); }

void add_transposed_product(const TensorView& weight, int64_t first, int64_t rows, int64_t n, const double* x,
                            double* to) {
  std::vector<double> row(static_cast<size_t>(n));
  for (int64_t r = 0; r < rows; ++r) {
    load_run(weight, (first + r) * n, 1, n, row.data());
    for (int64_t k = 0; k < n; ++k) to[k] += x[r] * row[static_cast<size_t>(k)];
  }
}

Term part_of_axis(Term x, int axis, int64_t begin, int64_t end) {
  if (begin == 0 && end == x.shape()[axis]) return x;
  Ints from, to;
  for (int i = 0; i < x.rank(); i++) {
    from.push_back(i == axis ? begin : 0);
    to.push_back(i == axis ? end : x.shape()[i]);
  }
  return x.gradient().call("slice_by_index", {{"x", x.value()}, {"begin", from}, {"end", to}});
}

RecurrentDirection::RecurrentDirection(Gradient& g, std::string suffix, bool is_backwards, int64_t column)
    : g_(g), suffix_(std::move(suffix)), is_backwards_(is_backwards), column_(column) {}

Term RecurrentDirection::ordered(Term x) const {
  return is_backwards_ ? g_.call("reverse", {{"x", x.value()}, {"axes", Ints{0}}}) : x;
}

Term RecurrentDirection::flat(Term x) const { return g_.reshape(x, {x.shape()[0] * x.shape()[1], x.shape()[2]}); }

Term RecurrentDirection::state(Term of_all) {
  return column_ < 0 ? of_all : part_of_axis(of_all, of_all.rank() - 1, column_, column_ + hidden());
}

Term RecurrentDirection::of_steps(Term of_all) {
  const Term own = state(of_all);
  return column_ < 0 ? own : ordered(own);
}

Term RecurrentDirection::initial(std::string_view param) { return state(part_of_axis(g_.in(param), 0, 0, batch())); }

Term RecurrentDirection::x_gates(std::string_view bias) {
  const Term weight = g_.in(name("weight_ih"));
  Term made = g_.product(flat(ordered(g_.in("x"))), false, weight, true);
  if (!bias.empty() && g_.has(name(bias))) made = made + g_.in(name(bias));
  return g_.reshape(made, {steps(), batch(), weight.shape()[0]});
}

std::vector<NamedArg> RecurrentDirection::args(std::string_view bias) {
  std::vector<NamedArg> out{{"x_gates", x_gates(bias).value()},
                            {"weight_hh", g_.in(name("weight_hh")).value()},
                            {"initial_h", initial("initial_h").value()}};
  Term last = state(g_.dy(1));
  if (g_.flag("output_sequence")) {
    out.emplace_back("y", of_steps(g_.y()).value());
    out.emplace_back("dy", of_steps(g_.dy()).value());
  } else {
    last = last + state(g_.reshape(g_.dy(), g_.y(1).shape()));
  }
  out.emplace_back("dh", last.value());
  return out;
}

Term RecurrentDirection::outer(Term a, Term b) { return g_.product(flat(a), true, flat(b), false); }

Term RecurrentDirection::dx(Term gates) {
  const Term made = g_.product(flat(gates), false, g_.in(name("weight_ih")), false);
  return ordered(g_.reshape(made, g_.in("x").shape()));
}

void RecurrentDirection::set_input_weights(Term gates) {
  if (g_.wants(name("weight_ih"))) g_.set(name("weight_ih"), outer(gates, ordered(g_.in("x"))));
}

void RecurrentDirection::set_bias(std::string_view param, Term gates) {
  if (g_.wants(name(param))) g_.set(name(param), g_.sum(gates, {0, 1}, false));
}

void set_initial(Gradient& g, std::string_view param, Term gradient) {
  if (!g.wants(param)) return;
  Shape spare = g.in(param).shape();
  spare[0] -= gradient.shape()[0];
  if (spare[0] > 0)
    gradient =
        g.call("concat", {{"values", std::vector<Value*>{gradient.value(), g.fill(spare, 0).value()}}, {"axis", 0}});
  g.set(param, gradient);
}

bool set_without_steps(Gradient& g) {
  if (g.y(1).shape().count() == 0 || g.in("x").shape()[0] != 0) return g.y(1).shape().count() == 0;
  const bool has_last = g.y().shape().count() > 0;
  set_initial(g, "initial_h", has_last ? g.dy(1) + g.reshape(g.dy(), g.y(1).shape()) : g.dy(1));
  if (g.op().output_count() > 2) set_initial(g, "initial_c", g.dy(2));
  return true;
}

}  // namespace moka::ops
