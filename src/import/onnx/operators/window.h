// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/onnx/node.h"

namespace moka::import::onnx {

/// The attributes of operators that move a window over the last axes: convolutions and pools.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads;  ///< in MIL's order: begin and end of each axis
  std::string pad_type;       ///< "valid", "same", "same_lower" or "custom"
  bool is_padded() const;
};

/// `kernel`: sizes of the kernel if no attribute gives them. `x` has two axes before those of the window.
Window window_of(const Node& n, const Value* x, std::vector<int64_t> kernel);

/// Pads the last axes of x with a value. `pads`: begin and end of each of these axes.
Value* padded(const Node& n, Value* x, const std::vector<int64_t>& pads, double value);

/// Adds a bias with one number per channel. MIL's operations take only a constant bias; other biases become an
/// addition.
Value* with_bias(const Node& n, Value* x, Value* bias);

/// A convolution with the attributes of `n`. `bias`: a constant, or nullptr.
Value* convolution(const Node& n, Value* x, Value* weight, Value* bias);

}  // namespace moka::import::onnx
