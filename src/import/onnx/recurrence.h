// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/onnx/node.h"

/// Writes one direction of ONNX's RNN, GRU or LSTM in MIL. `run_recurrence` takes the first form that fits:
///
/// 1. MIL's `rnn`, `gru` or `lstm`, if the weights are constant and MIL has the activations.
/// 2. For a GRU with PyTorch's reset gate, before ios18: the loop that coremltools writes. The pass `recognise_gru`
///    turns it back into one operation.
/// 3. The operations of each step, for up to `kWrittenOut` steps.
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
