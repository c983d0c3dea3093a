#include "ops/common/recurrent.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"

namespace moka::ops {

Result<Gate> gate_of(const OpCall& call, std::string_view param) {
  const std::string_view text = MOKA_TRY(call.text(param));
  std::string name(text);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "tanh") return Gate::tanh;
  if (name == "scaled_tanh") return Gate::scaled_tanh;
  if (name == "sigmoid") return Gate::sigmoid;
  if (name == "hard_sigmoid" || name == "sigmoid_hard") return Gate::hard_sigmoid;
  if (name == "relu") return Gate::relu;
  if (name == "linear") return Gate::linear;
  return call.error(param, "tanh, scaled_tanh, sigmoid, hard_sigmoid, relu or linear", cat("'", text, "'"));
}

void apply_gate(Gate g, double* v, int64_t n) {
  switch (g) {
    case Gate::tanh:
    case Gate::scaled_tanh:
      for (int64_t i = 0; i < n; ++i) v[i] = std::tanh(v[i]);
      return;
    case Gate::sigmoid:
      for (int64_t i = 0; i < n; ++i) v[i] = 1.0 / (1.0 + std::exp(-v[i]));
      return;
    case Gate::hard_sigmoid:
      for (int64_t i = 0; i < n; ++i) v[i] = std::min(std::max(0.2 * v[i] + 0.5, 0.0), 1.0);
      return;
    case Gate::relu:
      for (int64_t i = 0; i < n; ++i) v[i] = v[i] < 0 ? 0.0 : v[i];
      return;
    case Gate::linear: return;
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

}  // namespace moka::ops
