// SPDX-License-Identifier: Apache-2.0
#include "report_on.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "child.h"
#include "input.h"
#include "io/io_error.h"
#include "io/table.h"
#include "print.h"
#include "report_on_script.h"
#include "tar_stream.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {

namespace fs = std::filesystem;

namespace {

constexpr size_t kLargestAnswer = size_t{1} << 28, kLongestLine = 4096;

/// Words of a command line, with ' and " around those that hold spaces.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  bool inside = false;
  char quote = 0;
  for (const char c : text) {
    if (quote == 0 && (c == ' ' || c == '\t')) {
      inside = false;
      continue;
    }
    if (!inside) out.emplace_back();
    inside = true;
    if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote)
      quote = 0;
    else
      out.back() += c;
  }
  if (quote != 0) throw UsageError(fmt::format("--ssh {}: a quote is not closed", text));
  return out;
}

std::vector<std::string> ssh_command(const std::string& given) {
  const char* const named = std::getenv("MOKA_SSH");
  std::vector<std::string> words = words_of(!given.empty() ? given : named != nullptr ? named : "");
  if (words.empty()) words.emplace_back("ssh");
  return words;
}

/// Where a value of --input names a file.
struct NamedFile {
  size_t at = 0;
  std::string path;  ///< empty: it names none
};

NamedFile file_of_input(const std::string& input) {
  const size_t equal = input.starts_with('@') ? std::string::npos : input.find('=');
  const size_t at = equal == std::string::npos ? 0 : equal + 1;
  const std::string value = input.substr(at);
  if (value.starts_with("@@")) return {};
  if (value.starts_with('@')) return {at + 1, parse_reference(value.substr(1)).path};
  const FileReference named = parse_reference(value);
  std::error_code none;
  return {at, is_picture(named.extension) && fs::is_regular_file(named.path, none) ? named.path : ""};
}

std::string name_of(const fs::path& path) { return fs::absolute(path).lexically_normal().filename().string(); }

/// Adds the shared libraries of this process. "lib": what every host lacks. "lib/c++" and "lib/c": what it uses only
/// where its own C++ or C library is older.
void add_libraries(TarStream& to, std::string& loader) {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  constexpr std::string_view kCLibraries[] = {"libc.so.6",  "libm.so.6",      "libdl.so.2",   "libpthread.so.0",
                                              "librt.so.1", "libresolv.so.2", "libutil.so.1", "libmvec.so.1"};
  for (const std::string& path : paths) {
    const std::string name = fs::path(path).filename().string();
    std::error_code none;
    if (std::find(std::begin(kCLibraries), std::end(kCLibraries), name) != std::end(kCLibraries)) {
      if (name != "libc.so.6") continue;
      for (const std::string_view other : kCLibraries)
        if (const fs::path file = fs::path(path).parent_path() / other; fs::exists(file, none))
          to.add_file("lib/c/" + std::string(other), file);
    } else if (name.starts_with("ld-linux")) {
      loader = name;
      to.add_file("lib/c/" + name, path, true);
    } else if (fs::is_regular_file(path, none)) {  // the kernel's vdso is none
      to.add_file((name == "libstdc++.so.6" || name == "libgcc_s.so.1" ? "lib/c++/" : "lib/") + name, path);
    }
  }
}

/// All that a host needs.
TarStream cargo(const ReportOn& on) {
  TarStream out;
  out.add_file("moka", fs::read_symlink("/proc/self/exe"), true);
  FarProgram far{.c_library = gnu_get_libc_version()};
  add_libraries(out, far.loader);
  if (far.loader.empty()) throw io::IoError("--on: this program has no loader that could be copied");
  const std::string model = "model/" + name_of(on.model);
  out.add_tree(model, on.model);
  far.arguments = {"report", model, "--json"};
  far.arguments.insert(far.arguments.end(), on.options.begin(), on.options.end());
  for (size_t i = 0; i < on.inputs.size(); i++) {
    std::string input = on.inputs[i];
    if (const NamedFile file = file_of_input(input); !file.path.empty()) {
      const std::string copy = fmt::format("inputs/{}/{}", i, name_of(file.path));
      out.add_file(copy, file.path);
      input.replace(file.at, file.path.size(), copy);
    }
    far.arguments.insert(far.arguments.end(), {"--input", input});
  }
  out.add_text("run", far_script(far));
  return out;
}

/// A process of ssh with the ends of its pipes.
struct Connection {
  pid_t process = -1;
  int to = -1, answer = -1, errors = -1;
};

Connection start_ssh(const std::vector<std::string>& words, const SignalsForChild& signals) {
  int to[2], answer[2], errors[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(answer, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0)
    throw io::IoError(fmt::format("a pipe cannot be made: {}", std::strerror(errno)));
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t process = fork_bound("ssh");
  if (process == 0) {
    signals.restore();
    dup2(to[0], STDIN_FILENO);
    dup2(answer[1], STDOUT_FILENO);
    dup2(errors[1], STDERR_FILENO);
    execvp(argv[0], argv.data());
    dprintf(STDERR_FILENO, "%s cannot be started: %s\n", argv[0], std::strerror(errno));
    _exit(127);
  }
  close(to[0]);
  close(answer[1]);
  close(errors[1]);
  return {process, to[1], answer[0], errors[0]};
}

/// Calls `take` with each block until the other end is closed.
template <class Take>
void read_blocks(int end, const Take& take) {
  char block[65536];
  for (;;) {
    const ssize_t n = read(end, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    take(std::string_view(block, static_cast<size_t>(n)));
  }
}

/// Shows what a host says on its standard error, except the last line, which says why it failed if it did.
class FarErrors {
 public:
  explicit FarErrors(std::string host) : host_(std::move(host)) {}
  void take(std::string_view block) {
    for (const char c : block) {
      if (c == '\n')
        end_line();
      else if (line_.size() < kLongestLine)
        line_ += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  /// The last line. It was not shown.
  std::string finish() {
    end_line();
    return last_;
  }
  void show_last() { show(last_); }

 private:
  void end_line() {
    const std::string line(trimmed(line_));
    line_.clear();
    if (line.empty()) return;
    constexpr std::string_view kOwn = "moka report: ";
    show(last_);
    last_ = line.starts_with(kOwn) ? line.substr(kOwn.size()) : line;
  }
  void show(const std::string& text) const {
    if (!text.empty()) note("report", host_ + ": " + text);
  }

  std::string host_, line_, last_;
};

void send_files(int end, const TarStream& files, const std::string& host) {
  io::Progress progress("copy to " + host, files.bytes());
  files.write([&](std::string_view part) {
    const size_t bytes = part.size();
    while (!part.empty()) {
      const ssize_t n = write(end, part.data(), part.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;  // the process's message says why
      part.remove_prefix(static_cast<size_t>(n));
    }
    progress.advance(bytes);
    return true;
  });
}

/// What came of a connection.
struct Answered {
  std::string json, reason;
  int status = 0;
};

Answered run_there(const std::string& host, const ReportOn& on, const SignalsForChild& signals) {
  const TarStream files = cargo(on);
  std::vector<std::string> words = ssh_command(on.ssh);
  utsname system{};
  uname(&system);
  words.insert(words.end(), {host, far_command(system.sysname, system.machine, files.bytes())});
  const Connection ssh = start_ssh(words, signals);
  SignalsForChild::set_child(ssh.process);
  Answered out;
  FarErrors errors(host);
  std::thread answers([&] {
    read_blocks(ssh.answer, [&](std::string_view block) {
      if (out.json.size() <= kLargestAnswer)
        out.json += block;
      else
        kill(ssh.process, SIGKILL);
    });
  });
  std::thread said([&] { read_blocks(ssh.errors, [&](std::string_view block) { errors.take(block); }); });
  std::string local;
  try {
    send_files(ssh.to, files, host);
  } catch (const std::exception& e) {
    local = e.what();
    close(ssh.to);
  }
  // The host works for as long as this end is open.
  answers.join();
  said.join();
  out.status = wait_for(ssh.process);
  if (local.empty()) close(ssh.to);
  close(ssh.answer);
  close(ssh.errors);
  out.reason = errors.finish();
  if (!local.empty())
    out.reason = local;
  else if (!out.json.empty() && WIFEXITED(out.status) && WEXITSTATUS(out.status) == 0)
    errors.show_last();
  return out;
}

Report failed_host(const std::string& host, const std::string& why) {
  Report out;
  MeasuredSetting& setting = out.settings.emplace_back();
  setting.name = host;
  setting.failure = Failure{ErrorKind::io, why};
  return out;
}

Report report_that_came(const std::string& host, const Answered& answered) {
  if (answered.json.empty()) {
    const int status = answered.status;
    return failed_host(host, !answered.reason.empty() ? answered.reason
                             : WIFSIGNALED(status)
                                 ? fmt::format("ssh was ended by signal {}", WTERMSIG(status))
                                 : fmt::format("no report came, exit status {}", WEXITSTATUS(status)));
  }
  if (answered.json.size() > kLargestAnswer) return failed_host(host, "the answer is too long for a report");
  try {
    Report report = parse_report(answered.json);
    for (MeasuredSetting& s : report.settings) s.name = host + ": " + s.name;
    if (report.settings.empty()) return failed_host(host, "the report that came has no setting");
    return report;
  } catch (const Exception& e) {
    return failed_host(host, fmt::format("what came is not a report: {}", e.what()));
  }
}

}  // namespace

void check_hosts(const ReportOn& on) {
  if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr)
    throw UsageError(
        "--on: the program of the package for Python cannot be copied; use the one that is built from the sources");
  for (const std::string& host : on.hosts) {
    const auto strange = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 127; };
    if (host.empty() || host.starts_with('-') || std::any_of(host.begin(), host.end(), strange))
      throw UsageError(fmt::format("--on '{}': expected a host as ssh takes it, such as user@host", host));
    if (std::count(on.hosts.begin(), on.hosts.end(), host) > 1)
      throw UsageError(fmt::format("--on {}: given twice", host));
  }
  ssh_command(on.ssh);
  for (const std::string& input : on.inputs) {
    const std::string file = file_of_input(input).path;
    std::error_code none;
    if (!file.empty() && !fs::is_regular_file(file, none))
      throw UsageError(fmt::format("--input {}: there is no such file to copy", input));
  }
  cargo(on);  // what cannot be copied is found before anything is measured
}

Report report_on(const std::string& host, const ReportOn& on) {
  Answered answered;
  {
    const SignalsForChild signals({SIGINT, SIGTERM, SIGHUP}, {SIGPIPE});
    try {
      answered = run_there(host, on, signals);
    } catch (const io::IoError& e) {
      answered.reason = e.what();
    }
  }
  if (const int signal = SignalsForChild::caught(); signal != 0) raise(signal);
  return report_that_came(host, answered);
}

}  // namespace moka::cli
