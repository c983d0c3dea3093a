#pragma once

#include <optional>

#include "ir/program.h"
#include "kernel/stored.h"

namespace moka::plan {

/// What the operations that make `value` say of its elements.
std::optional<kernel::Codes> codes_of(const ir::Value& value);

}  // namespace moka::plan
