// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "format/source.h"

namespace moka::editing {

/// Replaces the weights of an ML program or a neural network by zeros or, with a seed, by random numbers. Sizes and
/// types stay the same. Weights are: floats and integers of at most 8 bits in weight files, a program's own tensors of
/// at least 10 floats, and the weights of layers. Masks, shapes and the indices of gather, scatter and one_hot stay.
/// Errors: unsupported (a classic model, whose numbers are its structure).
Status strip_weights(format::ModelSource& source, std::optional<uint64_t> seed);

}  // namespace moka::editing
