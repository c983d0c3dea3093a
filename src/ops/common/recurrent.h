#pragma once

#include <string>
#include <vector>

#include "ir/op_def.h"

/// What lstm, gru and rnn share.
namespace moka::ops {

/// An activation: scaled_tanh is alpha tanh(beta x), hard_sigmoid alpha x + beta within [0, 1], linear alpha x + beta.
struct Gate {
  enum class Function : uint8_t { tanh, scaled_tanh, sigmoid, hard_sigmoid, relu, linear };
  Function f = Function::tanh;
  double alpha = 0, beta = 0;
};

/// The activation a constant names, in any case; "sigmoid_hard" is another name of hard_sigmoid. Those with numbers
/// have MIL's, tanh(x), 0.2 x + 0.5 and x, or those that follow: "scaled_tanh(1.7, 0.6)", as neural networks may say.
Result<Gate> gate_of(const ir::OpCall& call, std::string_view param);
std::string gate_text(std::string_view name, float alpha, float beta);
void apply_gate(const Gate& g, double* v, int64_t n);

inline constexpr ir::Note kGateNote{
    "Activations are tanh, scaled_tanh (1, 1), sigmoid, hard_sigmoid (0.2, 0.5), relu and linear (1, 0); numbers "
    "behind a name, as in scaled_tanh(1.7, 0.6), set its alpha and beta.",
    "coremltools' definition for the names; the numbers are those of recurrent layers of neural networks, which become "
    "these operations"};
inline constexpr ir::Note kOrderNote{
    "reverse starts at the last step of x; with output_sequence its steps are in the order of computation.",
    "coremltools' TestGRU, TestLSTM and TestRNN, whose expected values come from PyTorch over the turned input"};

enum class Direction : uint8_t { forward, reverse, bidirectional };
Result<Direction> direction_of(const ir::OpCall& call, bool bidirectional_allowed);

/// The sizes of a recurrent layer; ir::kAnyDim where not known.
struct RecurrentSizes {
  int64_t steps = ir::kAnyDim, batch = ir::kAnyDim, inputs = ir::kAnyDim, hidden = ir::kAnyDim;
};

/// Checks x [steps, batch, inputs], weight_ih [gates * hidden, inputs] and weight_hh [gates * hidden, hidden].
/// `unranked` is set, and nothing checked, when a rank is not known.
Result<RecurrentSizes> recurrent_sizes(const ir::OpCall& call, int gates, bool& unranked);
/// Checks an optional or required parameter of known dimensions.
Status check_shape(const ir::OpCall& call, std::string_view param, std::initializer_list<int64_t> want);

/// Types of [steps or 1, batch, width] and `states` times [batch, width].
Result<std::vector<ir::Type>> recurrent_outputs(const ir::OpCall& call, const RecurrentSizes& s, int64_t width,
                                                int states);

/// to[r] += sum of weight[r][k] * x[k], for the rows [first, first + rows) of a [*, n] matrix.
void add_product(const ir::TensorView& weight, int64_t first, int64_t rows, int64_t n, const double* x, double* to);
/// to[i] += t[start + i].
void add_vector(const ir::TensorView& t, int64_t start, int64_t n, double* to);

}  // namespace moka::ops
