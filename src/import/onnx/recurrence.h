#pragma once

#include "import/onnx/node.h"

/// One direction of ONNX's RNN, GRU or LSTM as MIL. `run_recurrence` takes the first form that can say it:
///
/// 1. MIL's `rnn`, `gru` or `lstm`, for constant weights and activations that those have.
/// 2. A GRU of PyTorch, whose reset gate multiplies a product with a bias, before ios18: the loop that coremltools
/// writes,
///    which the pass `recognise_gru` turns back into one operation.
/// 3. Up to `kWrittenOut` steps: each step's operations.
/// 4. A `while_loop`.
namespace moka::import::onnx {

enum class Cell { rnn, gru, lstm };

constexpr size_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

/// What one direction of a recurrent operator reads. w: [gates * hidden, inputs], r: [gates * hidden, hidden], wb and
/// rb: [gates * hidden] or null together, peephole: [3 * hidden] or null, h and c: [batch, hidden].
struct Direction {
  Value *w = nullptr, *r = nullptr, *wb = nullptr, *rb = nullptr, *peephole = nullptr, *h = nullptr, *c = nullptr;
  std::vector<std::string> activations;
  std::vector<double> alpha, beta;
  bool backward = false;
};

/// What both directions share. Sizes that are not known are negative.
struct Recurrence {
  Cell cell;
  int64_t steps = 0, batch = 0, hidden = 0;
  bool linear_before_reset = false, input_forget = false;
  double clip = 0;
  Value* lengths = nullptr;  ///< [batch, 1]
};

/// The states after a step, [batch, hidden]. c is null but for an LSTM.
struct RecurrentState {
  Value *h, *c;
};

/// All states h in the order of x, [steps, batch, hidden], and the last ones.
struct RecurrentResult {
  Value* all;
  RecurrentState last;
};

RecurrentResult run_recurrence(const Node& n, const Recurrence& p, const Direction& d, Value* x);

}  // namespace moka::import::onnx
