#pragma once

#include <string>

#include "format/source.h"

namespace moka::editing {

/// Keeps one function of an ML program and calls it "main"; the model has its features. Drops weights that it does not
/// need. Error not_found.
Status extract_function(format::ModelSource& source, const std::string& name);

/// Adds a function of another ML program under a new name; an empty `from` stands for its default function. A program
/// without described functions keeps its own as "main". Equal weights are stored once. Raises the specification version
/// to 9, which has functions. Errors: not_found, invalid_argument (the name is taken).
Status add_function(format::ModelSource& source, const std::string& name, const format::ModelSource& other,
                    const std::string& from);

/// Error not_found.
Status set_default_function(format::Message model, const std::string& name);

}  // namespace moka::editing
