#pragma once

#include "import/onnx/node.h"

namespace moka::import::onnx {

/// The attributes of operators that move a window over the last axes: convolutions and pools.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads;  ///< begin and end of each axis, as MIL has them
  std::string pad_type;       ///< "valid", "same", "same_lower" or "custom"
  bool is_padded() const;
};

/// `kernel`: its sizes, where no attribute gives them. `x` has two axes before those of the window.
Window window_of(const Node& n, const Value* x, std::vector<int64_t> kernel);

/// x with `pads` (begin, end of each of the last axes) of a value around it.
Value* padded(const Node& n, Value* x, const std::vector<int64_t>& pads, double value);

/// A float operation with a bias of one number per channel, added where MIL wants a constant one.
Value* with_bias(const Node& n, Value* x, Value* bias);

}  // namespace moka::import::onnx
