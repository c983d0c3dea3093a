// SPDX-License-Identifier: Apache-2.0
#include "interface.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace moka::cli {
namespace {

std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// CLI11 reports the values of IsMember as a part of the type: "TEXT:{list,clear}".
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> out;
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return out;
  for (size_t at = open + 1; at < close;) {
    const size_t end = std::min(type.find(',', at), close);
    out.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

OptionFacts option_facts(const CLI::Option& option) {
  OptionFacts out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  out.description = on_one_line(option.get_description());
  if (option.get_items_expected_max() == 0) return out;
  out.choices = choices_of(option.get_type_name());
  out.value = option.get_option_text();
  out.value.erase(0, out.value.find_first_not_of(' '));
  if (out.value.empty()) out.value = option.get_positional() ? option.get_name(true) : "VALUE";
  return out;
}

}  // namespace

CommandFacts facts_of(const CLI::App& app) {
  CommandFacts out;
  out.name = app.get_name();
  out.description = on_one_line(app.get_description());
  out.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? out.arguments : out.options).push_back(option_facts(*option));
  }
  for (const CLI::App* command : app.get_subcommands({}))
    if (!command->get_group().empty()) out.commands.push_back(facts_of(*command));
  return out;
}

}  // namespace moka::cli
