// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What `moka report --on` runs on the other machine, in the language of POSIX's sh.
namespace moka::cli {

/// The program that was copied.
struct FarProgram {
  std::string c_library;  ///< version of glibc that it was linked with: "2.36"
  std::string loader{};   ///< the name of its dynamic loader, in lib/c
  std::vector<std::string> arguments{};
};

/// The command that takes `bytes` of tar from its standard input into a new folder, runs the folder's script "run", and
/// removes the folder. One line for any login shell. `system`, `machine`: what uname must say there.
std::string far_command(const std::string& system, const std::string& machine, uint64_t bytes);
/// The script "run": starts the program, and ends it when standard input ends.
std::string far_script(const FarProgram& program);

}  // namespace moka::cli
