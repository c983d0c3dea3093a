// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <new>

#include "child.h"
#include "command.h"
#include "io/io_error.h"
#include "moka/error.h"
#include "moka/moka.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

std::string overview(const std::vector<Command>& commands) {
  std::string out = bold("moka") + " runs Core ML models anywhere and shows what it does.\n\n";
  for (const Command& command : commands)
    out += fmt::format("  {}{}\n              {}\n\n", bold(fmt::format("{:<12}", command.app.app().get_name())),
                       command.app.app().get_description(), dim("$ " + command.example));
  return out +
         "MODEL is an .mlmodel file, an .mlpackage or an .mlmodelc folder.\n"
         "`moka COMMAND --help` tells every option; with --json each command answers in JSON.\n";
}

int guarded(const Command& command) {
  const std::string name = command.app.app().get_name();
  const auto failed = [&](std::string_view text, int code) {
    note(name, text);
    return code;
  };
  try {
    if (command.outputs) command.outputs->check();
    return command.run();
  } catch (const UsageError& e) {
    return failed(e.what(), kWrongUse);
  } catch (const Exception& e) {
    return failed(e.what(), e.kind() == ErrorKind::invalid_argument ? kWrongUse : kBadFile);
  } catch (const io::IoError& e) {
    return failed(e.what(), kBadFile);
  } catch (const std::bad_alloc&) {
    return failed("not enough memory", kBadFile);
  } catch (const std::exception& e) {
    return failed(e.what(), kBadFile);
  }
}

/// Why the arguments that no option or positional took are wrong.
std::string why_left(const CLI::App& app, const CLI::ExtrasError& error) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  for (std::string option : command->remaining()) {
    if (!option.starts_with("-")) continue;
    option = option.substr(0, option.find('='));
    std::vector<std::string> names;
    for (const CLI::Option* known : command->get_options())
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    const auto close = nearest(option, names);
    return fmt::format("no option '{}'{}", option, close ? fmt::format("; did you mean '{}'?", *close) : "");
  }
  return error.what();
}

/// Parses and runs the command line. Sets `name` to the command's name for messages.
int run_command(int argc, const char* const* argv, std::string& name) {
  CLI::App app("Runs Core ML models anywhere and shows what it does", "moka");
  app.set_version_flag("--version", "moka " MOKA_VERSION, "Print the version");
  app.set_help_flag("-h,--help", "Print this help");
  app.get_formatter()->column_width(32);
  const Arguments program(app);
  const std::vector<Command> commands{
      add_inspect(program), add_predict(program), add_explain(program),   add_bench(program),     add_tune(program),
      add_rates(program),   add_report(program),  add_record(program),    add_capture(program),   add_trace(program),
      add_cache(program),   add_compile(program), add_compress(program),  add_decompile(program), add_convert(program),
      add_edit(program),    add_update(program),  add_generate(program),  add_metadata(program),  add_key(program),
      add_encrypt(program), add_decrypt(program), add_verify(program),    add_diff(program),      add_lint(program),
      add_view(program),    add_version(program), add_completion(program)};
  app.require_subcommand(0, 1);

  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> names;
    for (const Command& command : commands) names.push_back(command.app.app().get_name());
    name = argv[1];
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const auto close = nearest(name, names);
      note("", fmt::format("no command '{}'{} {}", name,
                           close ? fmt::format("; did you mean '{}'? The commands are", *close) : "; the commands are",
                           quoted_list(names)));
      return kWrongUse;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    print(chosen.empty() ? overview(commands) : chosen[0]->help("moka"));
    return kFine;
  } catch (const CLI::CallForVersion& e) {
    print(std::string(e.what()) + "\n");
    return kFine;
  } catch (const CLI::ParseError& e) {
    const auto* left = dynamic_cast<const CLI::ExtrasError*>(&e);
    note(name, (left != nullptr ? why_left(app, *left) : e.what()) +
                   (name.empty() ? " (moka --help)" : " (moka " + name + " --help)"));
    return kWrongUse;
  }
  const auto chosen =
      std::find_if(commands.begin(), commands.end(), [](const Command& c) { return c.app.app().parsed(); });
  if (chosen != commands.end()) return guarded(*chosen);
  print(overview(commands));
  return kFine;
}

}  // namespace

int run(int argc, const char* const* argv) {
  end_with_named_parent();
  std::string name;
  int code = run_command(argc, argv, name);
  if (moka_trace_stop() != MOKA_OK) {
    note(name, moka_last_error());
    if (code == kFine) code = kBadFile;
  }
  const int error = flush_output();
  if (error == 0) return code;
  note(name, std::string("standard output: ") + std::strerror(error));
  return kBadFile;
}

}  // namespace moka::cli
