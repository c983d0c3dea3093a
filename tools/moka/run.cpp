#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "command.h"
#include "io/io_error.h"
#include "moka/error.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

std::string overview(const std::vector<Command>& commands) {
  std::string out = bold("moka") + " runs Core ML models anywhere and shows what it does.\n\n";
  for (const Command& command : commands)
    out += fmt::format("  {}{}\n           {}\n\n", bold(fmt::format("{:<9}", command.app->get_name())),
                       command.app->get_description(), dim("$ " + command.example));
  return out +
         "MODEL is an .mlmodel file, an .mlpackage or an .mlmodelc folder.\n"
         "`moka COMMAND --help` tells every option; with --json each command answers in JSON.\n";
}

int guarded(const Command& command) {
  const std::string name = command.app->get_name();
  const auto failed = [&](std::string_view text, int code) {
    note(name, text);
    return code;
  };
  try {
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

}  // namespace

int run(int argc, const char* const* argv) {
  CLI::App app("Runs Core ML models anywhere and shows what it does", "moka");
  app.set_version_flag("--version", "moka " MOKA_VERSION, "Print the version");
  app.set_help_flag("-h,--help", "Print this help");
  app.get_formatter()->column_width(32);
  const std::vector<Command> commands{add_inspect(app), add_predict(app), add_explain(app), add_bench(app)};
  app.require_subcommand(0, 1);

  std::string parsing;
  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> names;
    for (const Command& command : commands) names.push_back(command.app->get_name());
    parsing = argv[1];
    if (std::find(names.begin(), names.end(), parsing) == names.end()) {
      const auto close = nearest(parsing, names);
      note("", fmt::format("no command '{}'{} {}", parsing,
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
    note(parsing, std::string(e.what()) + (parsing.empty() ? " (moka --help)" : " (moka " + parsing + " --help)"));
    return kWrongUse;
  }
  int code = kFine;
  const auto chosen = std::find_if(commands.begin(), commands.end(), [](const Command& c) { return c.app->parsed(); });
  if (chosen == commands.end())
    print(overview(commands));
  else
    code = guarded(*chosen);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    note(parsing, std::string("standard output: ") + std::strerror(errno));
    return kBadFile;
  }
  return code;
}

}  // namespace moka::cli
