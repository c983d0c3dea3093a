// SPDX-License-Identifier: Apache-2.0
#include "ops/common/recurrent.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

using Function = Gate::Function;

struct Named {
  std::string_view name;
  Gate gate;
  bool numbers;
};

constexpr Named kGates[] = {
    {"tanh", {Function::tanh}, false},
    {"scaled_tanh", {Function::scaled_tanh, 1, 1}, true},
    {"sigmoid", {Function::sigmoid}, false},
    {"hard_sigmoid", {Function::hard_sigmoid, 0.2, 0.5}, true},
    {"sigmoid_hard", {Function::hard_sigmoid, 0.2, 0.5}, true},
    {"relu", {Function::relu}, false},
    {"linear", {Function::linear, 1, 0}, true},
};

/// Reads "(alpha, beta)".
bool read_numbers(std::string_view text, Gate& g) {
  const char* const end = text.data() + text.size();
  auto alpha = std::from_chars(text.data() + 1, end, g.alpha);
  if (alpha.ec != std::errc() || end - alpha.ptr < 2 || std::string_view(alpha.ptr, 2) != ", ") return false;
  auto beta = std::from_chars(alpha.ptr + 2, end, g.beta);
  return beta.ec == std::errc() && std::string_view(beta.ptr, end) == ")";
}

constexpr std::string_view kCoupled = "; coupled";

Result<Gate> gate_from(const OpCall& call, std::string_view param, std::string_view text) {
  std::string name(text.substr(0, text.find('(')));
  const std::string_view numbers = text.substr(name.size());
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Named& n : kGates) {
    if (n.name != name) continue;
    Gate g = n.gate;
    if (numbers.empty() || (n.numbers && read_numbers(numbers, g))) return g;
  }
  return call.error(param, "tanh, scaled_tanh, sigmoid, hard_sigmoid, relu or linear", cat("'", text, "'"));
}

}  // namespace

Result<Gate> gate_of(const OpCall& call, std::string_view param) {
  return gate_from(call, param, MOKA_TRY(call.text(param)));
}

std::string coupled_text(std::string_view activation) { return cat(activation, kCoupled); }

Result<RecurrentGate> recurrent_gate_of(const OpCall& call) {
  std::string_view text = MOKA_TRY(call.text("recurrent_activation"));
  RecurrentGate g;
  g.is_coupled = text.ends_with(kCoupled);
  if (g.is_coupled) text.remove_suffix(kCoupled.size());
  g.gate = MOKA_TRY(gate_from(call, "recurrent_activation", text));
  return g;
}

std::string gate_text(std::string_view name, float alpha, float beta) {
  char a[32], b[32];
  return cat(name, "(", std::string_view(a, std::to_chars(a, a + 32, alpha).ptr), ", ",
             std::string_view(b, std::to_chars(b, b + 32, beta).ptr), ")");
}

void apply_gate(const Gate& g, double* v, int64_t n) {
  switch (g.f) {
    case Function::tanh:
      for (int64_t i = 0; i < n; ++i) v[i] = std::tanh(v[i]);
      return;
    case Function::scaled_tanh:
      for (int64_t i = 0; i < n; ++i) v[i] = g.alpha * std::tanh(g.beta * v[i]);
      return;
    case Function::sigmoid:
      for (int64_t i = 0; i < n; ++i) v[i] = 1.0 / (1.0 + std::exp(-v[i]));
      return;
    case Function::hard_sigmoid:
      for (int64_t i = 0; i < n; ++i) v[i] = std::min(std::max(g.alpha * v[i] + g.beta, 0.0), 1.0);
      return;
    case Function::relu:
      for (int64_t i = 0; i < n; ++i) v[i] = v[i] < 0 ? 0.0 : v[i];
      return;
    case Function::linear:
      for (int64_t i = 0; i < n; ++i) v[i] = g.alpha * v[i] + g.beta;
      return;
  }
}

Result<Direction> direction_of(const OpCall& call, bool bidirectional_allowed) {
  const std::string_view text = MOKA_TRY(call.text("direction"));
  if (text == "forward") return Direction::forward;
  if (text == "reverse") return Direction::reverse;
  if (text == "bidirectional" && bidirectional_allowed) return Direction::bidirectional;
  return call.error("direction", bidirectional_allowed ? "forward, reverse or bidirectional" : "forward or reverse",
                    cat("'", text, "'"));
}

Status check_shape(const OpCall& call, std::string_view param, std::initializer_list<int64_t> want) {
  const Type& t = call.type(param);
  if (!t.is_ranked()) return {};
  bool ok = t.rank() == static_cast<int>(want.size());
  int i = 0;
  for (int64_t d : want) {
    if (ok && !may_equal(d, t.shape()[i])) ok = false;
    ++i;
  }
  return ok ? Status() : call.error(param, cat("shape ", Shape(want)), cat(t.shape()));
}

Result<RecurrentSizes> recurrent_sizes(const OpCall& call, int gates, bool& unranked) {
  RecurrentSizes s;
  unranked = any_unranked(call, {"x", "weight_ih", "weight_hh"});
  if (unranked) return s;
  const Shape& x = call.shape("x");
  const Shape& ih = call.shape("weight_ih");
  const Shape& hh = call.shape("weight_hh");
  if (x.rank() != 3) return call.error("x", "rank 3, [steps, batch, inputs]", cat(x));
  if (hh.rank() != 2) return call.error("weight_hh", "rank 2", cat(hh));
  if (ih.rank() != 2) return call.error("weight_ih", "rank 2", cat(ih));
  s.steps = x[0];
  s.batch = x[1];
  s.inputs = known_of(x[2], ih[1]);
  s.hidden = hh[1];
  if (s.hidden > INT32_MAX) return call.error("weight_hh", cat("at most ", INT32_MAX, " hidden units"), cat(hh));
  const int64_t rows = s.hidden < 0 ? kAnyDim : s.hidden * gates;
  MOKA_TRY(check_shape(call, "weight_hh", {rows, s.hidden}));
  MOKA_TRY(check_shape(call, "weight_ih", {rows, s.inputs}));
  return s;
}

Result<std::vector<Type>> recurrent_outputs(const OpCall& call, const RecurrentSizes& s, int64_t width, int states) {
  const bool all = MOKA_TRY(call.flag("output_sequence"));
  const DType dtype = call.dtype("x");
  std::vector<Type> out;
  out.push_back(Type::tensor(dtype, {all ? s.steps : 1, s.batch, width}));
  for (int i = 0; i < states; ++i) out.push_back(Type::tensor(dtype, {s.batch, width}));
  return out;
}

void add_product(const TensorView& weight, int64_t first, int64_t rows, int64_t n, const double* x, double* to) {
  for (int64_t r = 0; r < rows; ++r) to[r] += dot_run(weight, (first + r) * n, n, x);
}

void add_vector(const TensorView& t, int64_t start, int64_t n, double* to) {
  for (int64_t i = 0; i < n; ++i) to[i] += load_f64(t, start + i);
}

OpBuilder recurrent_builder(std::string name, std::string doc) {
  OpBuilder b(std::move(name), std::move(doc));
  b.type_var("T", only(DType::fp32))
      .in("x", "T")
      .in("initial_h", "T")
      .constant("weight_ih", "T")
      .constant("weight_hh", "T")
      .constant("bias", "T")
      .optional()
      .constant("direction", kString)
      .one_of({"forward", "reverse"})
      .or_else(Tensor::text("forward"))
      .constant("output_sequence", kBool)
      .or_else(Tensor::boolean(false));
  return b;
}

Status run_steps(const OpCall& call, std::span<const TensorView> out,
                 const std::function<void(const double* x, double* h)>& step) {
  const TensorView& x = call.in("x");
  const int64_t steps = x.shape[0], batch = x.shape[1], inputs = x.shape[2], hidden = call.in("weight_hh").shape[1];
  const bool reverse = MOKA_TRY(direction_of(call, false)) == Direction::reverse;
  const bool all = MOKA_TRY(call.flag("output_sequence"));
  std::vector<double> work(static_cast<size_t>(inputs + hidden));
  double* const row = work.data();
  double* const h = row + inputs;
  for (int64_t b = 0; b < batch; ++b) {
    load_run(call.in("initial_h"), b * hidden, 1, hidden, h);
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t at = reverse ? steps - 1 - t : t;
      load_run(x, (at * batch + b) * inputs, 1, inputs, row);
      step(row, h);
      if (all) store_run(out[0], (t * batch + b) * hidden, 1, hidden, h);
    }
    if (!all) store_run(out[0], b * hidden, 1, hidden, h);
    store_run(out[1], b * hidden, 1, hidden, h);
  }
  return {};
}

}  // namespace moka::ops
