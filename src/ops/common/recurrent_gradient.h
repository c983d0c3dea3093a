// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/gradient.h"
#include "ops/common/recurrent.h"

/// Shared by the gradients of lstm, gru and rnn. The operations `moka_lstm_gradient`, `moka_gru_gradient` and
/// `moka_rnn_gradient` walk the steps of one direction backwards; what sums over all steps are products around them.
namespace moka::ops {

/// The slope of an activation where its value is y.
double gate_slope(const Gate& g, double y);

/// Begins an operation of this kind: what its parameters share. `gates`: of a hidden unit.
///   x_gates    [steps, batch, gates * hidden], the products with x, and their bias
///   weight_hh  [gates * hidden, hidden]
///   initial_h  [batch, hidden]
///   y          [steps, batch, hidden], the hidden states if they are known
///   dy, dh     gradients of the states of all steps and of the last one
ir::OpBuilder recurrent_gradient_builder(std::string name, std::string doc);

/// Checks what recurrent_gradient_builder() declares. If a rank is unknown, sets `unranked` and checks nothing.
Result<RecurrentSizes> recurrent_gradient_sizes(const ir::OpCall& call, int gates, bool& unranked);

/// All elements in double.
std::vector<double> doubles_of(const ir::TensorView& t);
void store_doubles(const ir::TensorView& t, const std::vector<double>& from);
/// to[k] += sum over r of weight[first + r][k] * x[r] for r < rows and k < n.
void add_transposed_product(const ir::TensorView& weight, int64_t first, int64_t rows, int64_t n, const double* x,
                            double* to);

/// One direction of a layer, as its gradient sees it. Steps are in the order of computation.
class RecurrentDirection {
 public:
  /// `suffix`: of its weights. `is_backwards`: begins with the last step of x. `column`: of its states, among those of
  /// `width`; -1: it is the only direction.
  RecurrentDirection(ir::Gradient& g, std::string suffix, bool is_backwards, int64_t column);

  int64_t steps() const { return g_.in("x").shape()[0]; }
  int64_t batch() const { return g_.in("x").shape()[1]; }
  int64_t hidden() const { return g_.op().input("weight_hh")->type.shape()[1]; }

  /// Products of x with its weights, plus a bias.
  ir::Term x_gates(std::string_view bias);
  /// The first rows of an initial state.
  ir::Term initial(std::string_view param);
  /// The columns of this direction in a state [batch, width].
  ir::Term state(ir::Term of_all);
  /// The parameters that all operations share.
  std::vector<ir::NamedArg> args(std::string_view bias);

  /// The gradient of x through this direction.
  ir::Term dx(ir::Term gates);
  void set_input_weights(ir::Term gates);
  void set_bias(std::string_view param, ir::Term gates);
  /// The product [a columns, b columns] of two tensors [steps, batch, columns], summed over steps and batch.
  ir::Term outer(ir::Term a, ir::Term b);
  std::string name(std::string_view param) const { return std::string(param) + suffix_; }

 private:
  ir::Term ordered(ir::Term x) const;
  ir::Term of_steps(ir::Term of_all);
  ir::Term flat(ir::Term x) const;

  ir::Gradient& g_;
  std::string suffix_;
  bool is_backwards_;
  int64_t column_;
};

/// `x` without what is outside [begin, end) of an axis.
ir::Term part_of_axis(ir::Term x, int axis, int64_t begin, int64_t end);
/// Whether nothing is computed. Sets the gradients of the initial states then, which are the results of no steps.
bool set_without_steps(ir::Gradient& g);
/// The gradient of an initial state with possibly more rows than the batch.
void set_initial(ir::Gradient& g, std::string_view param, ir::Term gradient);

}  // namespace moka::ops
