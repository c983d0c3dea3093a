#pragma once

#include <cstdint>
#include <optional>

#include "format/source.h"

namespace moka::editing {

/// Replaces the weights of ML programs and neural networks by zeros, or by random numbers of this seed, of the same
/// size and type: files of weights, tensors of floats and of 8 bits and fewer with 10 elements and more, and weights of
/// layers. What programs index or shape with stays, and so do the codes of palettes and the sizes of everything.
/// Errors: unsupported (a classic model, whose numbers are its structure).
Status strip_weights(format::ModelSource& source, std::optional<uint64_t> seed);

}  // namespace moka::editing
