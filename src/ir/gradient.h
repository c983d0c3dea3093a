// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace moka::ir {

class Gradient;

/// A value of the program that a gradient is written in. Arithmetic on terms appends operations, which broadcast. After
/// the first failure nothing is appended, and the Gradient keeps the error.
class Term {
 public:
  Term(Gradient& gradient, Value* value) : gradient_(&gradient), value_(value) {}
  Value* value() const { return value_; }
  const Shape& shape() const { return value_->type.shape(); }
  int rank() const { return shape().rank(); }
  Gradient& gradient() const { return *gradient_; }

 private:
  Gradient* gradient_;
  Value* value_;
};

/// Writes the gradient of one operation: how the loss changes with each input that is asked for, given how it changes
/// with the outputs. All types are concrete.
///
///   .gradient([](Gradient& g) { g.set("x", g.dy() * (1.0 - square(g.y()))); })   // tanh
class Gradient {
 public:
  /// `outputs`: the gradients of the operation's outputs; null: the loss does not depend on it.
  Gradient(Builder& builder, const Op& op, std::vector<Value*> outputs, std::vector<const Value*> wanted,
           std::vector<Value*> captured);

  const Op& op() const { return op_; }
  Builder& builder() const { return builder_; }
  /// Whether the gradient of an input is asked for. False for an input that is absent.
  bool wants(std::string_view param, size_t i = 0) const;
  bool has(std::string_view param) const { return op_.input(param) != nullptr; }
  /// An input; floats are cast to the element type of output 0. Precondition: it is present.
  Term in(std::string_view param, size_t i = 0);
  Term x() { return in("x"); }
  Term y(size_t i = 0) { return {*this, op_.output(i)}; }
  /// The gradient of an output; zeros where the loss does not depend on it.
  Term dy(size_t i = 0);
  /// Whether the loss depends on an output.
  bool is_reached(size_t i) const { return outputs_[i] != nullptr; }

  /// The gradient of an output; null: the loss does not depend on it.
  Value* reached(size_t i) const { return outputs_[i]; }
  /// What the operation's blocks read from around them, as far as its gradient is asked for.
  std::span<Value* const> captured() const { return captured_; }
  void set_captured(size_t i, Value* gradient) { captured_results_[i] = gradient; }

  /// Sets the gradient of an input. It is summed over the axes along which the input was broadcast, or repeated where
  /// it has fewer elements than the input. Does nothing if the gradient is not asked for.
  void set(std::string_view param, Term gradient, size_t i = 0);
  /// Adds to a gradient that may be set.
  void add(std::string_view param, Term gradient, size_t i = 0);

  /// Appends an operation with one output.
  Term call(std::string_view op, std::vector<NamedArg> args);
  /// Appends an operation with `count` outputs.
  std::vector<Term> call_all(std::string_view op, std::vector<NamedArg> args, size_t count);
  /// A tensor of the element type of output 0, all of whose elements are `value`.
  Term fill(const Shape& shape, double value);
  Term cast(Term x, DType to);
  Term reshape(Term x, const Shape& shape);
  Term transpose(Term x, const Ints& axes);
  Term sum(Term x, const Ints& axes, bool keep_dims);
  /// The matrix product of the last two axes, where `ta` and `tb` transpose.
  Term product(Term a, bool ta, Term b, bool tb);
  /// A scalar constant of the element type of output 0.
  Constant scalar(double value) const;
  /// The operation itself, applied to another x.
  Term again(Term x);
  /// Another operation that has the operation's own inputs, but for those in `args` and in `without`.
  Term again_as(std::string_view op, std::vector<NamedArg> args, std::initializer_list<std::string_view> without = {});
  /// Sums or repeats.
  Term to_shape(Term x, const Shape& shape);

  /// Known parameters of the operation, with their defaults. A missing value fails.
  double number(std::string_view param);
  int64_t integer(std::string_view param);
  bool flag(std::string_view param);
  std::string_view text(std::string_view param);
  Ints ints(std::string_view param);
  const OpCall& known() const { return known_.call(); }

  /// The value, or an empty one after a failure.
  template <class T>
  T take(Result<T> result) {
    if (result.ok()) return std::move(*result);
    fail(std::move(result).error());
    return T{};
  }
  void fail(Error error);
  bool has_failed() const { return error_.has_value(); }
  Status take_status();
  /// The gradients that were set, parallel to all values of the operands; null: none.
  const std::vector<Value*>& results() const { return results_; }
  /// Those of captured().
  const std::vector<Value*>& captured_results() const { return captured_results_; }

 private:
  size_t position(std::string_view param, size_t i) const;

  Builder& builder_;
  const Op& op_;
  StaticCall known_;
  std::vector<Value*> outputs_;
  std::vector<bool> wanted_;
  std::vector<Value*> results_;
  std::vector<Value*> captured_, captured_results_;
  std::optional<Error> error_;
};

Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term operator+(Term a, double b);
Term operator-(Term a, double b);
Term operator*(Term a, double b);
Term operator/(Term a, double b);
Term operator+(double a, Term b);
Term operator-(double a, Term b);
Term operator*(double a, Term b);
Term operator/(double a, Term b);
Term operator-(Term a);
Term square(Term x);
/// An operation on x alone, such as "exp".
Term apply(std::string_view op, Term x);
/// A comparison, such as "greater".
Term compare(std::string_view op, Term x, Term y);
Term compare(std::string_view op, Term x, double y);
Term select(Term condition, Term yes, Term no);
Term select(Term condition, Term yes, double no);
Term select(Term condition, double yes, Term no);

/// Appends operations that compute the gradient of `loss`, a single number, with respect to `targets`, values of the
/// same block: for each a value of its type, or null where the loss does not depend on it. Error unsupported: an
/// operation between them has no gradient, or a type is not concrete.
Result<std::vector<Value*>> differentiate(Builder& builder, Value& loss, std::span<Value* const> targets);

/// A value and how the loss changes with it.
struct Known {
  Value* value;
  Value* gradient;
};
/// The same from values whose gradients are known.
Result<std::vector<Value*>> differentiate(Builder& builder, std::span<const Known> known,
                                          std::span<Value* const> targets);

}  // namespace moka::ir
