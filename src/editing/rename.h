#pragma once

#include "editing/features.h"

namespace moka::editing {

/// Renames inputs, outputs and states in the description and wherever the model's content refers to them; in a
/// pipeline, in each stage that the feature passes. All at once, so two features can swap names. Values inside the
/// model that have a new name get another one. Errors: not_found; invalid_argument (two features of one name, a name
/// that a program cannot have, one side of a value that is an input and an output); unsupported (custom and linked
/// models, whose features other code names).
Status rename_features(Message model, const Names& names, Side side);

/// Renames operations of ML programs and layers of neural networks. Error not_found.
Status rename_operations(Message model, const Names& names);

/// Renames values of ML programs, and what layers of neural networks compute. Features keep their names. Errors:
/// not_found, invalid_argument (a feature, a name in use).
Status rename_values(Message model, const Names& names);

}  // namespace moka::editing
