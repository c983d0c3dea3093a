// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "format/source.h"

namespace moka::editing {

/// Keeps one function of an ML program and renames it to "main". The model then has the features of this function.
/// Drops the weights that only other functions use. Error not_found.
Status extract_function(format::ModelSource& source, const std::string& name);

/// Adds a function of another ML program under a new name; an empty `from` stands for its default function. If the
/// description lists no functions, the program's own function stays as "main". Equal weights are stored once. Raises
/// the specification version to 9, the first with functions. Errors: not_found, invalid_argument (the name is taken).
Status add_function(format::ModelSource& source, const std::string& name, const format::ModelSource& other,
                    const std::string& from);

/// Error not_found.
Status set_default_function(format::Message model, const std::string& name);

}  // namespace moka::editing
