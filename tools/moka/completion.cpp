// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "command.h"
#include "interface.h"
#include "json.h"
#include "print.h"

namespace moka::cli {
namespace {

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string names_of(const std::vector<OptionFacts>& options) {
  std::string out;
  for (const auto& option : options)
    for (const std::string& name : option.names) out += (out.empty() ? "" : " ") + name;
  return out;
}

std::string names_of(const std::vector<CommandFacts>& commands) {
  std::string out;
  for (const auto& command : commands) out += (out.empty() ? "" : " ") + command.name;
  return out;
}

/// Puts text in single quotes. `escape`: the representation of a single quote in it.
std::string quoted(std::string_view text, std::string_view escape) {
  std::string out = "'";
  for (char c : text) c == '\'' ? out += escape : out += c;
  return out + "'";
}

/// The words after "--option": a list, files, or nothing.
std::string bash_values(const CommandFacts& command) {
  std::string out;
  for (const auto& option : command.options) {
    if (option.is_flag()) continue;
    const std::string offer = !option.choices.empty() ? fmt::format("-W '{}'", joined(option.choices))
                              : option.is_path()      ? "-f"
                                                      : "";
    out += fmt::format("        {}) {}; return ;;\n", fmt::join(option.names, "|"),
                       offer.empty() ? "COMPREPLY=()" : fmt::format("COMPREPLY=($(compgen {} -- \"$word\"))", offer));
  }
  return out;
}

std::string bash(const CommandFacts& program) {
  std::string out = fmt::format(R"(# bash completion for {0}
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{1} {2}' -- "$word"))
    return
  fi
  case $command in
)",
                                program.name, names_of(program.commands), names_of(program.options));
  for (const auto& command : program.commands) {
    std::string arguments = "-f";
    for (const auto& argument : command.arguments)
      if (!argument.choices.empty()) arguments = fmt::format("-W '{}'", joined(argument.choices));
    const std::string values = bash_values(command);
    out += fmt::format("    {})\n", command.name);
    if (!values.empty()) out += fmt::format("      case $before in\n{}      esac\n", values);
    out += fmt::format(R"(      case $word in
        -*) COMPREPLY=($(compgen -W '{}' -- "$word")) ;;
        *) COMPREPLY=($(compgen {} -- "$word")) ;;
      esac ;;
)",
                       names_of(command.options), arguments);
  }
  return out + fmt::format("  esac\n}}\ncomplete -o filenames -F _{0} {0}\n", program.name);
}

/// A description inside the brackets and colons of _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    c == '\'' ? out += "'\\''" : out += c;
  }
  return out;
}

std::string zsh_value(const OptionFacts& option) {
  if (option.is_flag()) return {};
  const std::string offer = !option.choices.empty() ? fmt::format("({})", joined(option.choices))
                            : option.value == "DIR" ? "_files -/"
                            : option.is_path()      ? "_files"
                                                    : " ";
  return fmt::format(":{}:{}", zsh_text(option.value), offer);
}

std::string zsh(const CommandFacts& program) {
  std::string out = fmt::format("#compdef {0}\n\n_{0}() {{\n  local -a commands\n  commands=(\n", program.name);
  for (const auto& command : program.commands)
    out += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.description));
  out += R"(  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
)";
  for (const auto& command : program.commands) {
    out += fmt::format("    {})\n      _arguments", command.name);
    for (const auto& option : command.options)
      for (const std::string& name : option.names)
        out += fmt::format(" \\\n        '*{}[{}]{}'", name, zsh_text(option.description), zsh_value(option));
    for (const auto& argument : command.arguments)
      out += fmt::format(" \\\n        ':{}'", zsh_value(argument).substr(1));
    out += " ;;\n";
  }
  return out + fmt::format("  esac\n}}\n\n_{0} \"$@\"\n", program.name);
}

std::string fish(const CommandFacts& program) {
  std::string out = fmt::format("# fish completion for {}\n", program.name);
  const auto text = [](std::string_view t) { return quoted(t, "\\'"); };
  for (const auto& command : program.commands)
    out += fmt::format("complete -c {} -n __fish_use_subcommand -f -a {} -d {}\n", program.name, command.name,
                       text(command.description));
  for (const auto& command : program.commands) {
    const std::string start =
        fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'", program.name, command.name);
    for (const auto& argument : command.arguments)
      if (!argument.choices.empty()) out += fmt::format("{} -f -a {}\n", start, text(joined(argument.choices)));
    for (const auto& option : command.options) {
      out += start;
      for (const std::string& name : option.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.is_flag()) out += option.is_path() ? " -r" : " -x";
      if (!option.choices.empty()) out += " -a " + text(joined(option.choices));
      out += " -d " + text(option.description) + "\n";
    }
  }
  return out;
}

}  // namespace

std::string completion_script(const CommandFacts& program, const std::string& shell) {
  return shell == "bash" ? bash(program) : shell == "zsh" ? zsh(program) : fish(program);
}

Command add_completion(Arguments parent) {
  auto shell = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  Arguments app = parent.add_subcommand("completion", "Print shell completion for commands and options");
  app.add_option("SHELL", *shell, "bash, zsh, fish, or man for the manual page")
      .required()
      .check(one_of({"bash", "zsh", "fish", "man"}))
      .option_text(" ");
  app.add_flag("--json", *json, "Answer in JSON");
  app.footer("Shells find installed copies automatically. Example: source <(moka completion bash)");
  return {app, "source <(moka completion bash)", [shell, json, parent] {
            const CommandFacts program = facts_of(parent.app());
            const std::string text =
                *shell == "man" ? man_page(program, MOKA_VERSION) : completion_script(program, *shell);
            print(*json ? rendered(Json{{"shell", *shell}, {"text", text}}) : text);
            return 0;
          }};
}

}  // namespace moka::cli
