// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "command.h"
#include "io/io_error.h"
#include "io/table.h"
#include "json.h"
#include "print.h"
#include "text.h"
#include "trace_options.h"
#include "trace_peers.h"
#include "usage_error.h"

namespace moka::cli {

namespace {

/// The file of a recording, which holds whole packets at any time, so that it is valid whatever ends.
class Recording {
 public:
  Recording(std::string path, const Outputs& outputs) : path_(std::move(path)) {
    outputs.check(path_, FileKind::trace);
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0 || (ftruncate(fd_, 0) != 0 && errno != EINVAL)) refuse();
  }
  Recording(const Recording&) = delete;
  ~Recording() { close(fd_); }
  /// Writes the packets at the start of `bytes` that are complete, and removes them.
  void add(std::string& bytes) {
    size_t whole = 0;
    for (size_t end = 0; (end = packet_end(bytes, whole)) != 0;) whole = end;
    for (size_t done = 0; done < whole;) {
      const ssize_t n = write(fd_, bytes.data() + done, whole - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) refuse();
      done += static_cast<size_t>(n);
    }
    size_ += whole;
    bytes.erase(0, whole);
  }
  size_t size() const { return size_; }

 private:
  [[noreturn]] void refuse() const {
    throw io::IoError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  }
  /// Where the packet at `at` ends; 0: it is not complete.
  static size_t packet_end(const std::string& bytes, size_t at) {
    uint64_t length = 0;
    size_t i = at + 1;
    for (int shift = 0; i < bytes.size() && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes[i++]);
      length |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return length <= bytes.size() - i ? i + static_cast<size_t>(length) : 0;
    }
    return 0;
  }

  const std::string path_;
  int fd_ = -1;
  size_t size_ = 0;
};

/// The signals that end a recording, as something to wait for.
class EndingSignals {
 public:
  EndingSignals() {
    sigset_t all;
    sigemptyset(&all);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&all, s);
    sigprocmask(SIG_BLOCK, &all, &before_);
    fd_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  EndingSignals(const EndingSignals&) = delete;
  ~EndingSignals() {
    if (fd_ >= 0) close(fd_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  int fd() const { return fd_; }
  void take() const {
    signalfd_siginfo info{};
    (void)!read(fd_, &info, sizeof info);
  }

 private:
  int fd_ = -1;
  sigset_t before_{};
};

struct Source {
  PeerConnection connection;
  std::string pending;
  bool is_at_end = false;
};

bool reads_terminal() { return isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) == getpgrp(); }

/// Reads what the processes record, until they end, or the user or the time ends the recording.
class Recorder {
 public:
  Recorder(std::vector<Source>& sources, double seconds, Recording& to)
      : sources_(sources), to_(to), has_deadline_(seconds > 0), deadline_(Clock::now() + rounded(seconds)) {}

  /// Returns whether the user or the time ended it.
  bool run() {
    const bool terminal = reads_terminal();
    while (any_open()) {
      std::vector<pollfd> wanted{{signals_.fd(), POLLIN, 0},
                                 {terminal && !is_stopping_ ? STDIN_FILENO : -1, POLLIN, 0}};
      for (const Source& s : sources_) wanted.push_back({s.is_at_end ? -1 : s.connection.fd(), POLLIN, 0});
      if (poll(wanted.data(), wanted.size(), patience()) < 0 && errno != EINTR) break;
      if (wanted[0].revents != 0) {
        signals_.take();
        if (is_stopping_) break;  // asked twice: what is there must do
        stop();
      }
      if (wanted[1].revents != 0) stop_at_line();
      if (!is_stopping_ && has_deadline_ && Clock::now() >= deadline_) stop();
      for (size_t i = 0; i < sources_.size(); i++)
        if (wanted[i + 2].revents != 0) take(sources_[i]);
      if (is_stopping_ && Clock::now() >= deadline_) break;  // it does not answer
    }
    return is_stopping_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kPatience = 60;  ///< seconds in which a process must have sent the rest
  static Clock::duration rounded(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, 1e8)));
  }
  bool any_open() const {
    for (const Source& s : sources_)
      if (!s.is_at_end) return true;
    return false;
  }
  int patience() const {
    if (!has_deadline_ && !is_stopping_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
  }
  void stop() {
    is_stopping_ = true;
    deadline_ = Clock::now() + rounded(kPatience);
    for (const Source& s : sources_)
      if (!s.is_at_end) s.connection.say("stop\n");
  }
  void stop_at_line() {
    char line[256];
    (void)!read(STDIN_FILENO, line, sizeof line);
    stop();
  }
  void take(Source& s) {
    char bytes[65536];
    const ssize_t n = recv(s.connection.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      s.is_at_end = true;
      return;
    }
    s.pending.append(bytes, static_cast<size_t>(n));
    to_.add(s.pending);
  }

  std::vector<Source>& sources_;
  Recording& to_;
  const EndingSignals signals_;
  const bool has_deadline_;
  Clock::time_point deadline_;
  bool is_stopping_ = false;
};

std::vector<Source> attached(const TraceOptions& options) {
  std::vector<PeerConnection> found;
  if (!options.socket.empty()) {
    if (PeerConnection c = PeerConnection::to(options.socket); c.is_connected())
      found.push_back(std::move(c));
    else
      throw io::IoError(fmt::format("{}: no process of this user listens there", options.socket));
  } else {
    found = connections_to(static_cast<pid_t>(options.pid));
    if (found.empty()) throw io::IoError(why_not(static_cast<pid_t>(options.pid)));
  }
  std::vector<Source> out;
  for (PeerConnection& c : found) out.push_back({std::move(c), {}, false});
  return out;
}

std::string request_of(const TraceOptions& options) {
  std::string out = "record";
  if (!options.ring.empty()) out += " bytes=" + options.ring;
  if (options.last > 0) out += fmt::format(" seconds={}", options.last);
  return out;
}

}  // namespace

int trace_process(const TraceOptions& options, const Outputs& outputs) {
  const std::string path = options.out.empty() ? kUsualTrace : options.out;
  outputs.check(path, FileKind::trace);
  std::vector<Source> sources = attached(options);
  for (const Source& s : sources) s.connection.ask(request_of(options));
  Recording to(path, outputs);
  const pid_t pid = sources.front().connection.pid();
  const std::string until = options.seconds > 0 ? fmt::format("for {}", format_seconds(options.seconds))
                            : reads_terminal()  ? "until Enter or Ctrl-C"
                                                : "until Ctrl-C";
  note("trace", fmt::format("records process {} ({}) {}", pid, command_of(pid), until));
  const bool was_stopped = Recorder(sources, options.seconds, to).run();
  if (!was_stopped) note("trace", fmt::format("process {} ended, or began a trace of its own", pid));
  if (to.size() == 0) throw io::IoError(fmt::format("{}: process {} sent no trace", path, pid));
  note("trace", fmt::format("{}: {}; open it at ui.perfetto.dev, or: moka trace conclude {} -o page.html", path,
                            format_bytes(static_cast<double>(to.size())), path));
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) ? summarize(options, path) : static_cast<int>(kFine);
}

namespace {

struct ListedModel {
  std::string name, path;
  double seconds = 0;  ///< since it was loaded
};
struct ListedProcess {
  pid_t pid = 0;
  std::string command, socket;
  double seconds = 0;
  std::vector<ListedModel> models;
};

std::vector<ListedModel> models_in(const std::string& answer) {
  std::vector<ListedModel> out;
  for (size_t at = 0; at < answer.size();) {
    const size_t end = std::min(answer.find('\n', at), answer.size());
    const std::string line = answer.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("model ")) {
      const size_t name = line.find(' ', 6);
      if (name == std::string::npos) continue;
      const double seconds = static_cast<double>(parse_integer(line.substr(6, name - 6)).value_or(0)) * 1e-3;
      out.push_back({line.substr(name + 1), {}, seconds});
    } else if (line.starts_with("path ") && !out.empty()) {
      out.back().path = line.substr(5);
    }
  }
  return out;
}

std::vector<ListedProcess> listed() {
  std::vector<ListedProcess> out;
  for (const pid_t pid : possible_peers())
    for (const PeerConnection& c : listening(pid)) try {
        c.ask("list");
        out.push_back({pid, command_of(pid), c.path(), age_of(pid), models_in(c.rest())});
      } catch (const io::IoError&) {
        continue;  // it ended meanwhile
      }
  return out;
}

std::string models_text(const std::vector<ListedModel>& models) {
  std::vector<std::pair<std::string, int>> counted;
  for (const ListedModel& m : models) {
    if (!counted.empty() && counted.back().first == m.name)
      counted.back().second++;
    else
      counted.emplace_back(m.name, 1);
  }
  std::string out;
  for (const auto& [name, count] : counted)
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", name, count > 1 ? fmt::format(" ({})", count) : "");
  return out.empty() ? "none" : out;
}

}  // namespace

int list_processes(const TraceOptions& options) {
  const std::vector<ListedProcess> all = listed();
  if (options.json) {
    Json json = Json::array();
    for (const ListedProcess& p : all) {
      Json models = Json::array();
      for (const ListedModel& m : p.models)
        models.push_back({{"name", m.name}, {"path", m.path}, {"seconds", m.seconds}});
      json.push_back(
          {{"pid", p.pid}, {"command", p.command}, {"seconds", p.seconds}, {"socket", p.socket}, {"models", models}});
    }
    print(rendered(json));
    return kFine;
  }
  if (all.empty()) {
    print("No process of this user lets itself be recorded. MOKA_TRACE_SOCKET=1 in its environment does.\n");
    return kFine;
  }
  io::Table table({{"process", io::Align::right},
                   {"runs for", io::Align::right},
                   {"models", io::Shrink::wrap},
                   {"command", io::Shrink::middle}});
  for (const ListedProcess& p : all)
    table.add_row({std::to_string(p.pid), format_seconds(p.seconds), models_text(p.models), p.command});
  print(table_text(table));
  return kFine;
}

}  // namespace moka::cli
