#include "moka/trace.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "arguments.h"
#include "child.h"
#include "command.h"
#include "io/file.h"
#include "io/io_error.h"
#include "io/table.h"
#include "print.h"
#include "temporary_folder.h"
#include "trace_summary.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

struct TraceOptions {
  std::vector<std::string> words;
  std::string out = "moka.pftrace", by = "kind";
  bool json = false;
};

/// Runs the command with MOKA_TRACE set. Returns what a shell would: its exit code, or 128 and the signal. Signals that
/// would end this process end the command, and this process then collects the trace. The command is the user's: if
/// SIGKILL ends this process, the command goes on, as under other tracers.
int run_traced(const std::vector<std::string>& words, const std::string& pattern) {
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  // The terminal sends SIGINT and SIGQUIT to the command as well.
  const SignalsForChild signals({SIGTERM, SIGHUP}, {SIGINT, SIGQUIT});
  const pid_t child = fork();
  if (child < 0) throw io::IoError(fmt::format("{}: cannot be started: {}", words[0], std::strerror(errno)));
  if (child == 0) {
    signals.restore();
    setenv("MOKA_TRACE", pattern.c_str(), 1);
    execvp(argv[0], argv.data());
    const int error = errno;
    note("trace", fmt::format("{}: cannot be started: {}", words[0], std::strerror(error)));
    _exit(error == ENOENT ? 127 : 126);
  }
  SignalsForChild::set_child(child);
  const int status = wait_for(child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// The traces of all processes one behind the other, which is one trace. Returns their number.
size_t join(const fs::path& folder, const std::string& out) {
  std::vector<fs::path> parts;
  for (const auto& entry : fs::directory_iterator(folder)) parts.push_back(entry.path());
  std::sort(parts.begin(), parts.end());
  if (parts.empty()) return 0;
  std::ofstream to(out, std::ios::binary);
  for (const fs::path& part : parts)
    if (std::ifstream from(part, std::ios::binary); from.peek() != std::ifstream::traits_type::eof())
      to << from.rdbuf();
  to.close();
  if (!to) io::fail(out, "cannot be written: ", std::strerror(errno));
  return parts.size();
}

int trace_command(const TraceOptions& options) {
  io::check_writable(options.out);
  const TemporaryFolder folder("trace");
  const int code = run_traced(options.words, (folder.path() / "%p.pftrace").string());
  const size_t processes = join(folder.path(), options.out);
  if (processes == 0) {
    if (code != 126 && code != 127)
      note("trace", fmt::format("{}: no process used Moka, nothing was written", options.words[0]));
    return code;
  }
  std::error_code ignored;
  note("trace", fmt::format("{}: {} of {}; open it at ui.perfetto.dev, or: moka trace summary {}", options.out,
                            format_bytes(static_cast<double>(fs::file_size(options.out, ignored))),
                            plural(static_cast<int64_t>(processes), "process"), options.out));
  return code;
}

int trace(const TraceOptions& options) {
  if (options.words.empty())
    throw UsageError("expected a command to trace or 'summary FILE', got nothing: moka trace -- python predict.py");
  if (options.words[0] != "summary") return trace_command(options);
  if (options.words.size() != 2)
    throw UsageError(fmt::format("summary: expected one trace, got {}",
                                 plural(static_cast<int64_t>(options.words.size()) - 1, "file")));
  const TraceSummary summary = summarize_trace(options.words[1]);
  print(options.json ? rendered(summary_json(summary)) : summary_text(summary, options.by));
  return 0;
}

}  // namespace

Command add_trace(Arguments parent) {
  auto options = std::make_shared<TraceOptions>();
  Arguments app = parent.add_subcommand("trace", "Records what a program does with models, for Perfetto");
  app.add_option("COMMAND", options->words, "A command with its arguments, after --; or: summary FILE")
      .option_text(" ");
  app.add_option("-o,--out", options->out, "Where the trace of the command goes (default moka.pftrace)")
      .option_text("FILE");
  app.add_option("--by", options->by, "What a summary's rows are: kind (default), name, model, device or kernel")
      .check(one_of({"kind", "name", "model", "device", "kernel"}))
      .option_text("WHAT");
  app.add_flag("--json", options->json, "The summary in JSON, times in seconds");
  app.footer(
      "The exit code is the command's. MOKA_TRACE=FILE in the environment traces a program as well.\n"
      "Example: moka trace -o out.pftrace -- moka predict Model.mlpackage --input random");
  return {app, "moka trace -- moka predict Model.mlpackage --input random", [options] { return trace(*options); }};
}

}  // namespace moka::cli
