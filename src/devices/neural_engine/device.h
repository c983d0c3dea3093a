#pragma once

#include "kernel/preview.h"

namespace moka::devices::neural_engine {

/// A preview of Apple's Neural Engine: neural_engine.rules and the user's own say what it would run. What it takes is
/// computed by the host's kernels, with all inputs and results rounded to float16 and sums of float32. It is used where
/// cpuAndNeuralEngine or a pin asks for it.
const kernel::Device& device();

}  // namespace moka::devices::neural_engine
