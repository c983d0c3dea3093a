#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace moka::cli {

/// Checks of option values. Their messages state what was expected and what was given: "--threads: expected a whole
/// number from 1 to 1024, got 'many'".
CLI::Validator whole_number(int64_t least, int64_t most);
CLI::Validator number(double least, double most);
CLI::Validator one_of(std::vector<std::string> choices);

}  // namespace moka::cli
