// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "moka/model.h"
#include "outputs.h"

namespace moka::cli {

/// Reads every state from FOLDER/NAME.npy. Throws IoError for missing and damaged files, UsageError for other shapes.
void read_states(State& state, const std::string& folder);
/// Writes every state as FOLDER/NAME.npy and returns the files.
std::vector<std::string> write_states(const State& state, const std::string& folder, const Outputs& to);

}  // namespace moka::cli
