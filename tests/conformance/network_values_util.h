// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "conformance/grid_util.h"
#include "ir/op_def.h"

/// The elements of a random network: numbers, constants, weights in every stored form, and operations.
namespace moka::conformance {

using Sizes = std::vector<int64_t>;

inline int64_t product_of(const Sizes& s) {
  return std::accumulate(s.begin(), s.end(), int64_t{1}, std::multiplies<>());
}
inline Sizes sizes(const ir::Value* v) { return {v->type.shape().dims().begin(), v->type.shape().dims().end()}; }
inline ir::Tensor ints(const Sizes& v) { return ir::Tensor::i32(v); }

/// Makes some sizes of the inputs of type `dtype` unknown, and the sizes of all results, which follow from them.
void forget_sizes(ir::Function& f, ir::DType dtype, Choices& c);

/// Builds a function of a random opset. Its inputs and constants are all float32 or all float16. Values of constants
/// come from a generator of their own, because `Choices` may be a short string of bytes.
class NetworkValues {
 public:
  explicit NetworkValues(Choices& c);

  int64_t channels();
  /// Numbers drawn uniformly from [middle - most, middle + most].
  ir::Tensor random(const Sizes& s, double most, double middle = 0);
  ir::Tensor number(double v);
  /// Random numbers, as from random(), whose shape broadcasts to that of `x`.
  ir::Tensor factors(const ir::Value* x, double most, double middle);
  /// A random permutation of the dimensions, often one that moves the channels.
  Sizes permutation(size_t rank);
  /// A constant argument, as the result of a `const` operation or inline.
  ir::NamedArg given(const char* name, ir::Tensor t);
  /// Random weights of shape `s`, some of them compressed. `taken` is the number of products that each result adds up.
  /// The weights shrink with its square root, so that activations do not grow from layer to layer.
  ir::NamedArg weights(const char* name, const Sizes& s, int64_t taken);
  /// Appends an operation. nullptr: it does not fit, or its result is too large.
  ir::Value* op(std::string_view name, std::vector<ir::NamedArg> args);

 protected:
  Choices& c_;
  std::unique_ptr<ir::Function> function_;
  ir::Builder builder_;
  std::mt19937 random_;
  ir::DType dtype_;
  bool large_;  ///< whether channels and images are large enough for other tiles of the kernels

 private:
  ir::Tensor codes(ir::DType dtype, const Sizes& s);
  int64_t divisor(int64_t n);
  ir::Value* palette(const Sizes& s, double most);
  ir::Value* palettes(const Sizes& s, double most);
  ir::Value* affine_weights(const Sizes& s, double most);
  ir::Value* blockwise(const Sizes& s, double most);
};

}  // namespace moka::conformance
