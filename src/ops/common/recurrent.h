// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/op_def.h"

/// Shared by lstm, gru and rnn: activations of gates, shapes, and the loop over steps.
namespace moka::ops {

/// An activation. scaled_tanh is alpha tanh(beta x), hard_sigmoid is alpha x + beta clamped to [0, 1], linear is
/// alpha x + beta.
struct Gate {
  enum class Function : uint8_t { tanh, scaled_tanh, sigmoid, hard_sigmoid, relu, linear };
  Function f = Function::tanh;
  double alpha = 0, beta = 0;
};

/// The activation that a constant names, in upper or lower case. "sigmoid_hard" is an alias of hard_sigmoid. Alpha and
/// beta default to MIL's: tanh(x), 0.2 x + 0.5 and x. Neural networks may set others after the name: "scaled_tanh(1.7,
/// 0.6)".
Result<Gate> gate_of(const ir::OpCall& call, std::string_view param);
std::string gate_text(std::string_view name, float alpha, float beta);
/// The text of a recurrent activation of `lstm` whose forget gate is 1 minus the input gate.
std::string coupled_text(std::string_view activation);
/// The recurrent activation of `lstm`. Kernels that read it with gate_of refuse coupled gates.
struct RecurrentGate {
  Gate gate;
  bool is_coupled = false;
};
Result<RecurrentGate> recurrent_gate_of(const ir::OpCall& call);
void apply_gate(const Gate& g, double* v, int64_t n);

inline constexpr ir::Note kGateNote{
    "Activations are tanh, scaled_tanh (1, 1), sigmoid, hard_sigmoid (0.2, 0.5), relu and linear (1, 0). Numbers after "
    "a "
    "name, as in scaled_tanh(1.7, 0.6), set its alpha and beta.",
    "coremltools' definition for the names; the numbers are those of recurrent layers of neural networks, which become "
    "these operations"};
inline constexpr ir::Note kOrderNote{
    "reverse begins with the last step of x. With output_sequence, steps are in the order of computation.",
    "coremltools' TestGRU, TestLSTM and TestRNN, whose expected values come from PyTorch on the reversed input"};

enum class Direction : uint8_t { forward, reverse, bidirectional };
Result<Direction> direction_of(const ir::OpCall& call, bool bidirectional_allowed);

/// The sizes of a recurrent layer; ir::kAnyDim: unknown.
struct RecurrentSizes {
  int64_t steps = ir::kAnyDim, batch = ir::kAnyDim, inputs = ir::kAnyDim, hidden = ir::kAnyDim;
};

/// Checks x [steps, batch, inputs], weight_ih [gates * hidden, inputs] and weight_hh [gates * hidden, hidden]. If a
/// rank is unknown, sets `unranked` and checks nothing.
Result<RecurrentSizes> recurrent_sizes(const ir::OpCall& call, int gates, bool& unranked);
/// Checks an optional or required parameter of known dimensions.
Status check_shape(const ir::OpCall& call, std::string_view param, std::initializer_list<int64_t> want);

/// The output types: [steps or 1, batch, width] and `states` times [batch, width].
Result<std::vector<ir::Type>> recurrent_outputs(const ir::OpCall& call, const RecurrentSizes& s, int64_t width,
                                                int states);

/// to[r] += sum over k of weight[first + r][k] * x[k] for r < rows; `weight` has rows of n.
void add_product(const ir::TensorView& weight, int64_t first, int64_t rows, int64_t n, const double* x, double* to);
/// to[i] += t[start + i].
void add_vector(const ir::TensorView& t, int64_t start, int64_t n, double* to);

/// Begins an operation with one hidden state: the parameters from x to output_sequence, which gru and rnn share.
ir::OpBuilder recurrent_builder(std::string name, std::string doc);

/// Runs step(x, h) for each step of each batch entry. `x` holds the inputs of the step and `h` the hidden state, which
/// `step` replaces. Writes the outputs of gru and rnn.
Status run_steps(const ir::OpCall& call, std::span<const ir::TensorView> out,
                 const std::function<void(const double* x, double* h)>& step);

}  // namespace moka::ops
