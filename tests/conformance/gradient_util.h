// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/case_util.h"

/// Programs that compute the gradient of a random loss, and central differences that judge them.
namespace moka::conformance {

/// What weights become.
enum class Weights : uint8_t { inputs, parameters };

struct Differentiated {
  ir::Program program;                   ///< its results: the loss, then the gradients
  std::vector<ir::RuntimeValue> inputs;  ///< of the case, and its weights if they are inputs
  std::vector<size_t> targets;           ///< what has a gradient, counted over inputs and then parameters
};
/// The case in float32. Without `with_gradients` it computes only the loss: the sum of all float results times random
/// numbers. nullopt: nothing can be differentiated. Error unsupported: an operation has no gradient.
Result<std::optional<Differentiated>> differentiated(const Case& c, bool with_gradients, Weights weights);
/// Computes everything in double.
void widen(Differentiated& d);

struct Compared {
  size_t elements = 0, steps = 0;  ///< steps: where the loss bends or jumps
};
/// What the difference between a gradient and a central difference may be: part of the gradient and of the loss.
struct GradientBound {
  double gradient = 1e-5, loss = 1e-5;
};
/// Compares at most `most` elements of each gradient, in double. Returns "" or the first one that is wrong.
Result<std::string> gradient_error(const Case& c, int64_t most, const GradientBound& bound, Compared& compared);

}  // namespace moka::conformance
