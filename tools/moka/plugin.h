// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace moka::cli {

/// Loads plug-ins, so that models find what they register: shared libraries here, Python files in a Python that has the
/// package moka, which then runs this command line anew. Throws UsageError where there is no such Python.
void load_plugins(const std::vector<std::string>& paths);

}  // namespace moka::cli
