// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// The options of subcommands, by CLI11. Only arguments.cpp, run.cpp and interface.cpp include CLI11, because each file
/// that does takes seconds longer to compile.
///
///   Arguments app = parent.add_subcommand("cache", "List or clear the packed weights");
///   app.add_option("WHAT", options->what, "list or clear").required().check(one_of({"list", "clear"}));
///   app.add_flag("--json", options->json, "Answer in JSON");
namespace moka::cli {

/// A check of an option's value. Messages state what was expected and what was given: "--threads: expected a whole
/// number from 1 to 1024, got 'many'".
struct Check {
  std::function<std::string(std::string&)> message;  ///< empty when the value is allowed, which it may rewrite
  std::vector<std::string> choices;                  ///< shell completion offers these
};
Check whole_number(int64_t least, int64_t most);
Check number(double least, double most);
Check one_of(std::vector<std::string> choices);

/// A handle of an option, with CLI11's names.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& option_text(const std::string& text);  ///< the name of the value in the help: "DIR"; " " for none
  Option& check(Check check);
  Option& needs(Option other);
  Option& delimiter(char separator);
  Option& allow_extra_args(bool allow);

 private:
  CLI::Option* option_;
};

/// A handle of a subcommand or of the whole program.
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(&app) {}
  CLI::App& app() const { return *app_; }

  Arguments add_subcommand(const std::string& name, const std::string& help) const;
  /// T: std::string, an integer, double, or a vector of texts or integers; see the list in arguments.cpp. The variable
  /// keeps its value when the option is not given.
  template <class T>
  Option add_option(const std::string& names, T& to, const std::string& help) const;
  Option add_flag(const std::string& names, bool& to, const std::string& help) const;
  void footer(const std::string& text) const;
  void allow_extras() const;
  /// The options that were given and their values, in the order of the command line; a flag has an empty value.
  std::vector<std::pair<std::string, std::string>> given() const;
  std::vector<std::string> remaining() const;  ///< arguments that no option takes, after parsing

 private:
  CLI::App* app_;
};

}  // namespace moka::cli
