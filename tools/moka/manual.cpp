// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "interface.h"

namespace moka::cli {
namespace {

/// Escapes text for roff, where a backslash, a minus, and a dot or quote at the start of a line have special meanings.
std::string roff(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string option_text(const OptionFacts& option) {
  std::string out = ".TP\n";
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", roff(name));
  if (!option.is_flag()) names += fmt::format("{}\\fI{}\\fR", names.empty() ? "" : " ", roff(option.value));
  return out + names + "\n" + roff(option.description) + "\n";
}

std::string command_text(const CommandFacts& program, const CommandFacts& command) {
  std::string out = fmt::format(".SS {} {}\n{}.\n", program.name, command.name, roff(command.description));
  for (const auto& argument : command.arguments) out += option_text(argument);
  for (const auto& option : command.options) out += option_text(option);
  if (!command.footer.empty()) out += ".PP\n.nf\n" + roff(command.footer) + "\n.fi\n";
  return out;
}

}  // namespace

std::string man_page(const CommandFacts& program, const std::string& version) {
  std::string out = fmt::format(".TH MOKA 1 \"\" \"moka {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", version,
                                program.name, roff(program.description));
  out += fmt::format(".SH SYNOPSIS\n.B {0}\n.I COMMAND\n[\\fIOPTION\\fR]...\n", program.name);
  out +=
      ".SH DESCRIPTION\nA model is an .mlmodel file, an .mlpackage or an .mlmodelc folder. Answers go to standard "
      "output, "
      "errors and remarks to standard error. Tables are as wide as the terminal; a pipe gets every name in full, and "
      "\\fB\\-\\-json\\fR gives every answer for programs.\n.SH COMMANDS\n";
  for (const auto& command : program.commands) out += command_text(program, command);
  out +=
      ".SH EXIT STATUS\n.TP\n0\nsuccess\n.TP\n2\nwrong use: options or inputs that do not fit\n.TP\n"
      "3\na file that cannot be used, or an error while predicting\n";
  out +=
      ".SH ENVIRONMENT\n.TP\n\\fBCOLUMNS\\fR\nthe width of lines in a terminal\n.TP\n\\fBNO_COLOR\\fR\n"
      "if not empty, no colors\n.TP\n\\fBMOKA_CACHE\\fR\nas \\fB\\-\\-cache\\fR\n.TP\n\\fBMOKA_KERNEL_CACHE\\fR\n"
      "as \\fB\\-\\-kernels\\fR\n";
  return out;
}

}  // namespace moka::cli
