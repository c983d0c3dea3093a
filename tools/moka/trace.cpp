// SPDX-License-Identifier: Apache-2.0
#include "moka/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
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

/// The pipe into which traced processes write why they could not write their trace.
class Errors {
 public:
  Errors() {
    if (::pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0)
      throw io::IoError(fmt::format("a pipe cannot be made: {}", std::strerror(errno)));
  }
  Errors(const Errors&) = delete;
  ~Errors() {
    for (const int end : ends_) ::close(end);
  }
  /// Processes that inherit no descriptor of this one can open it.
  std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), ends_[1]); }
  bool any() const {
    char first = 0;
    return ::read(ends_[0], &first, 1) > 0;
  }

 private:
  int ends_[2] = {-1, -1};
};

/// Runs the command with MOKA_TRACE set. Returns what a shell would: its exit code, or 128 and the signal. Signals that
/// would end this process end the command, and this process then collects the trace. The command is the user's: if
/// SIGKILL ends this process, the command goes on, as under other tracers.
int run_traced(std::vector<std::string> words, const std::string& pattern, const Errors& errors) {
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const std::string pipe = errors.path();
  flush_output();
  // The terminal sends SIGINT and SIGQUIT to the command as well.
  const SignalsForChild signals({SIGTERM, SIGHUP}, {SIGINT, SIGQUIT});
  const pid_t child = fork();
  if (child < 0) throw io::IoError(fmt::format("{}: cannot be started: {}", words[0], std::strerror(errno)));
  if (child == 0) {
    signals.restore();
    setenv("MOKA_TRACE", pattern.c_str(), 1);
    setenv("MOKA_TRACE_ERRORS", pipe.c_str(), 1);
    execvp(argv[0], argv.data());
    const int error = errno;
    note("trace", fmt::format("{}: cannot be started: {}", words[0], std::strerror(error)));
    _exit(error == ENOENT ? 127 : 126);
  }
  SignalsForChild::set_child(child);
  const int status = wait_for(child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// The traces of all processes one behind the other, which is one trace. Sets `processes` to their number.
io::Bytes joined(const fs::path& folder, size_t& processes) {
  std::vector<fs::path> parts;
  for (const auto& entry : fs::directory_iterator(folder)) parts.push_back(entry.path());
  std::sort(parts.begin(), parts.end());
  processes = parts.size();
  io::Bytes out;
  for (const fs::path& part : parts) {
    const io::Bytes bytes = io::read_file(part);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

int trace_command(const TraceOptions& options, const Outputs& outputs) {
  outputs.check(options.out, FileKind::trace);
  const TemporaryFolder folder("trace");
  const Errors errors;
  const int code = run_traced(options.words, (folder.path() / "%p.pftrace").string(), errors);
  const bool is_cut = errors.any();
  size_t processes = 0;
  const io::Bytes bytes = joined(folder.path(), processes);
  if (is_cut) {
    note("trace", fmt::format("{}: a process could not write its trace, and the file is not written", options.out));
    return code != 0 ? code : static_cast<int>(kBadFile);
  }
  if (processes == 0) {
    if (code != 126 && code != 127)
      note("trace", fmt::format("{}: no process used Moka, nothing was written", options.words[0]));
    return code;
  }
  outputs.write(options.out, FileKind::trace, bytes);
  note("trace", fmt::format("{}: {} of {}; open it at ui.perfetto.dev, or: moka trace summary {}", options.out,
                            format_bytes(static_cast<double>(bytes.size())),
                            plural(static_cast<int64_t>(processes), "process"), options.out));
  return code;
}

int trace(const TraceOptions& options, const Outputs& outputs) {
  if (options.words.empty())
    throw UsageError("expected a command to trace or 'summary FILE', got nothing: moka trace -- python predict.py");
  if (options.words[0] != "summary") return trace_command(options, outputs);
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
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->out, {{"", FileKind::trace}},
                   "Where the trace of the command goes (default moka.pftrace)")
      .option_text("FILE");
  app.add_option("--by", options->by, "What a summary's rows are: kind (default), name, model, device or kernel")
      .check(one_of({"kind", "name", "model", "device", "kernel"}))
      .option_text("WHAT");
  app.add_flag("--json", options->json, "The summary in JSON, times in seconds");
  app.footer(
      "The exit code is the command's. MOKA_TRACE=FILE in the environment traces a program as well.\n"
      "Example: moka trace -o out.pftrace -- moka predict Model.mlpackage --input random");
  return {app, "moka trace -- moka predict Model.mlpackage --input random",
          [options, outputs] { return trace(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
