// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "import/description.h"
#include "ir/program.h"

namespace moka::linting {

/// How tight an interval is.
enum class Grip : uint8_t {
  wide,     ///< the elements are in the interval
  reached,  ///< for some allowed input, an element is at either end
  each,     ///< any element can be at either end, whatever the others are
};

/// The numbers that the elements of a value can have.
struct Interval {
  double low = -HUGE_VAL, high = HUGE_VAL;
  Grip grip = Grip::wide;

  bool is_bounded() const;
  double magnitude() const;
  bool contains(double x) const { return low <= x && x <= high; }
};

/// The numbers of an integer type of at most 16 bits or a boolean; unbounded for others.
Interval numbers_of(ir::DType type);

/// Bounds of the values of a function, from its constants and the declared ranges of its inputs. For one thread.
class Bounds {
 public:
  using Ranges = std::map<std::string, std::pair<double, double>>;  ///< allowed numbers of inputs
  /// The bounds of all values.
  static Bounds of(const ir::Function& function, const import::FunctionDescription* description, const Ranges& ranges);
  /// The same, but looks only at what a question needs: few large weights are read. The function must live on. Bounds
  /// may be wider behind thousands of operations.
  static Bounds on_demand(const ir::Function& function, const import::FunctionDescription* description,
                          const Ranges& ranges);

  Interval of(const ir::Value* value) const;
  /// These bounds where an element of `value` is in `interval`: narrower for what few elementwise operations make of
  /// the same element. The result must not outlive these bounds.
  Bounds assuming(const ir::Value* value, Interval interval) const;
  /// The largest size that a dimension of an input may have; unknown dimensions inside count as at most that.
  double largest_size() const { return largest_size_; }

 private:
  void walk(const ir::Block& block) const;
  Interval computed(const ir::Value* value) const;

  const Bounds* general_ = nullptr;  ///< of values that do not depend on `assumed_`
  const ir::Value* assumed_ = nullptr;
  mutable std::unordered_map<const ir::Value*, Interval> known_;
  mutable int depth_ = 0;
  double largest_size_ = HUGE_VAL;
};

/// An operation whose inputs' bounds are known.
struct Call {
  const ir::Op& op;
  const Bounds& bounds;
  const ir::Value& result;  ///< the one to bound

  Interval in(std::string_view parameter) const;  ///< unbounded when it is absent
  /// A constant number, or the parameter's default.
  double number(std::string_view parameter, double otherwise) const;
  int64_t elements(std::string_view parameter) const;  ///< of an input; 0 when unknown
  /// The size of a dimension of an input, which may count from the end, or what it is at most.
  double size(std::string_view parameter, int64_t axis) const;
};

using Transfer = Interval (*)(const Call& call);
using Transfers = std::map<std::string_view, Transfer>;
/// How operations map the intervals of their inputs to that of their result, by families.
const Transfers& elementwise_transfers();
const Transfers& selection_transfers();
const Transfers& activation_transfers();
const Transfers& linear_transfers();
const Transfers& movement_transfers();
const Transfers& reduction_transfers();
const Transfers& index_transfers();

/// Applies a function that never decreases to both ends.
template <class F>
Interval rising(Interval x, const F& f) {
  return {f(x.low), f(x.high), x.grip};
}
/// The smallest interval that contains both.
Interval hull(Interval a, Interval b);
/// The intervals of x * factor and of x + addend.
Interval scaled(Interval x, double factor);
Interval shifted(Interval x, double addend);
/// `x` with this grip, or its own if that is wider.
Interval at_most(Interval x, Grip grip);

}  // namespace moka::linting
