// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/recurrent.h"

namespace moka::devices::gpu {

Function function_of(const ops::Gate& g) {
  const auto a = static_cast<float>(g.alpha), b = static_cast<float>(g.beta);
  switch (g.f) {
    case ops::Gate::Function::tanh: return {F_TANH};
    case ops::Gate::Function::scaled_tanh: return {F_SCALED_TANH, a, b};
    case ops::Gate::Function::sigmoid: return {F_SIGMOID};
    case ops::Gate::Function::hard_sigmoid: return {F_SIGMOID_HARD, a, b};
    case ops::Gate::Function::relu: return {F_RELU};
    case ops::Gate::Function::linear: return {F_LINEAR, a, b};
  }
  return {};
}

ProductKernel StepProducts::ahead_of(int64_t rows, int count) const {
  ProductKernel k{card};
  Product& p = k.product;
  p.rows = u32(rows);
  p.columns = u32(count * hidden);
  p.depth = p.a_row = p.b_column = u32(hidden);
  p.c_row = u32(gates * hidden);
  p.b_k = p.bias_column = 1;
  return k;
}

ProductKernel StepProducts::back_of(int count) const {
  ProductKernel k{card};
  Product& p = k.product;
  p.rows = u32(batch);
  p.columns = p.b_k = p.c_row = u32(hidden);
  p.depth = u32(count * hidden);
  p.a_row = u32(gates * hidden);
  p.b_column = p.bias_column = 1;
  return k;
}

Status StepProducts::ahead(Recorder& recorder, int64_t rows, int first, int count, const Use& h, const Use& weight,
                           Use bias, Use addend, const Use& z) const {
  const int64_t column = first * hidden;
  if (bias.buffer != nullptr) bias = bias.from(column);
  if (addend.buffer != nullptr) addend = addend.from(column);
  return ahead_of(rows, count)
      .record(recorder, {h.to_read(), weight.from(column * hidden), bias, addend, z.from(column)});
}

Status StepProducts::back(Recorder& recorder, int first, int count, const Use& dz, const Use& weight, const Use& addend,
                          const Use& dh) const {
  const int64_t column = first * hidden;
  return back_of(count).record(recorder, {dz.to_read().from(column), weight.from(column * hidden), Use{},
                                          addend.buffer != nullptr ? addend.to_read() : Use{}, dh});
}

std::string StepProducts::refusal() const {
  if (steps > kMostSteps) return cat("more than ", kMostSteps, " steps");
  for (const int64_t rows : {batch, steps * batch})
    if (std::string why = ahead_of(rows, gates).refusal(); !why.empty()) return why;
  return back_of(gates).refusal();
}

std::optional<StepProducts> step_products(const MatchCall& m, int gates, std::initializer_list<std::string_view> params,
                                          std::string& refusal) {
  refusal = refusal_of_floats(m, params);
  const ir::Shape& x = m.call.shape("x_gates");
  if (refusal.empty() && m.outputs[0].dtype() != ir::DType::fp32) refusal = cat("element type ", m.outputs[0].dtype());
  if (!refusal.empty()) return std::nullopt;
  const StepProducts s{&features_of(m), x[0], x[1], m.call.shape("weight_hh")[1], gates};
  refusal = s.refusal();
  if (!refusal.empty()) return std::nullopt;
  return s;
}

void copy_states(Recorder& recorder, const StepProducts& s, const Use& initial_h, const Use& y, const Use& states) {
  recorder_of(recorder).copy(initial_h, states.part(0, s.state()));
  const int64_t known = (s.steps - 1) * s.state();
  if (y.buffer != nullptr && known > 0) recorder_of(recorder).copy(y.part(0, known), states.part(s.state(), known));
}

}  // namespace moka::devices::gpu
