// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "child.h"
#include "command.h"
#include "io/file.h"
#include "io/io_error.h"
#include "moka/error.h"
#include "print.h"
#include "temporary_folder.h"
#include "text.h"
#include "trace_options.h"
#include "usage_error.h"

namespace moka::cli {

namespace fs = std::filesystem;

namespace {

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
int run_traced(const TraceOptions& options, const std::string& pattern, const Errors& errors) {
  std::vector<std::string> words = options.words;
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
    if (!options.ring.empty()) setenv("MOKA_TRACE_RING", options.ring.c_str(), 1);
    if (options.last > 0) setenv("MOKA_TRACE_LAST", fmt::format("{}", options.last).c_str(), 1);
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

/// What the trace tells, on standard error: standard output is the command's.
void tell_conclusions(const TraceOptions& options, const std::string& path) {
  if (std::error_code error; !fs::is_regular_file(path, error)) return;  // it went to a pipe
  const std::string text = conclusions_text(conclude_trace(path, conclusion_options(options)));
  std::fputs(text.c_str(), stderr);
}

}  // namespace

int trace_command(const TraceOptions& options, const Outputs& outputs) {
  const std::string path = options.out.empty() ? kUsualTrace : options.out;
  outputs.check(path, FileKind::trace);
  const TemporaryFolder folder("trace");
  const Errors errors;
  const int code = run_traced(options, (folder.path() / "%p.pftrace").string(), errors);
  const bool is_cut = errors.any();
  size_t processes = 0;
  const io::Bytes bytes = joined(folder.path(), processes);
  if (is_cut) {
    note("trace", fmt::format("{}: a process could not write its trace, and the file is not written", path));
    return code != 0 ? code : static_cast<int>(kBadFile);
  }
  if (processes == 0) {
    if (code != 126 && code != 127)
      note("trace", fmt::format("{}: no process used Moka, nothing was written", options.words[0]));
    return code;
  }
  if (bytes.empty()) {
    note("trace", fmt::format("{}: the process was killed with its ring, nothing was written", options.words[0]));
    return code;
  }
  outputs.write(path, FileKind::trace, bytes);
  note("trace", fmt::format("{}: {} of {}; open it at ui.perfetto.dev, or: moka trace summary {}", path,
                            format_bytes(static_cast<double>(bytes.size())),
                            processes == 1 ? std::string("1 process") : fmt::format("{} processes", processes), path));
  tell_conclusions(options, path);
  return code;
}

}  // namespace moka::cli
