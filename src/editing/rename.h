// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "editing/features.h"

namespace moka::editing {

/// Renames inputs, outputs and states in the description and wherever the model's content refers to them. In a
/// pipeline, it renames them in each stage that they enter or leave. All names change at once, so two features can swap
/// names. If another value inside the model already has one of the new names, that value is renamed as well. Errors:
/// not_found; invalid_argument (two features with the same name, a name that a program cannot have, renaming only one
/// side of a value that is an input and an output); unsupported (custom and linked models, because other code refers to
/// their features by name).
Status rename_features(Message model, const Names& names, Side side);

/// Renames operations of ML programs and layers of neural networks. Error not_found.
Status rename_operations(Message model, const Names& names);

/// Renames values of ML programs or of neural networks that are not features. Errors: not_found, invalid_argument (a
/// feature, a name in use).
Status rename_values(Message model, const Names& names);

}  // namespace moka::editing
