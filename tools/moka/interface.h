// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

/// The command line as data, read from its CLI11 definitions. Shell completion and the man page are generated from it.
namespace moka::cli {

struct OptionFacts {
  std::vector<std::string> names;    ///< "-i", "--input"; empty for a positional argument
  std::string value;                 ///< "NAME=VALUE", "MODEL"; empty for a flag
  std::string description;           ///< on one line
  std::vector<std::string> choices;  ///< allowed values; empty: any
  bool is_flag() const { return value.empty(); }
  /// The value is a path: MODEL, DIR, FILE.
  bool is_path() const { return value == "MODEL" || value == "DIR" || value == "FILE"; }
};

struct CommandFacts {
  std::string name, description, footer;
  std::vector<OptionFacts> options, arguments;
  std::vector<CommandFacts> commands;
};

/// `root` and its commands, except those in a group without a name.
CommandFacts facts_of(const CLI::App& root);

/// "bash", "zsh" or "fish".
std::string completion_script(const CommandFacts& program, const std::string& shell);
/// The page of section 1 in roff.
std::string man_page(const CommandFacts& program, const std::string& version);

}  // namespace moka::cli
