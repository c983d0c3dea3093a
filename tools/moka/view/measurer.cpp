// SPDX-License-Identifier: Apache-2.0
#include "view/measurer.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "child.h"
#include "io/io_error.h"
#include "report.h"

namespace moka::cli {
namespace {

bool send_all(int end, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = send(end, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool receive_all(int end, char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = recv(end, data, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

/// Messages are a length of 8 bytes and a text.
bool send_text(int end, const std::string& text) {
  const uint64_t size = text.size();
  return send_all(end, reinterpret_cast<const char*>(&size), sizeof size) && send_all(end, text.data(), text.size());
}

std::optional<std::string> receive_text(int end) {
  uint64_t size = 0;
  if (!receive_all(end, reinterpret_cast<char*>(&size), sizeof size)) return std::nullopt;
  std::string text(size, '\0');
  if (!receive_all(end, text.data(), text.size())) return std::nullopt;
  return text;
}

}  // namespace

Measurer::Measurer(LoadOptions load) : load_(std::move(load)) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw io::IoError(fmt::format("a pair of sockets cannot be made: {}", std::strerror(errno)));
  try {
    process_ = fork_bound("a process that measures");
  } catch (...) {
    close(ends[0]);
    close(ends[1]);
    throw;
  }
  if (process_ == 0) {
    close(ends[0]);
    end_ = ends[1];
    serve();
  }
  close(ends[1]);
  end_ = ends[0];
}

Measurer::~Measurer() {
  close(end_);
  wait_for(process_);
}

void Measurer::serve() {
  while (const auto function = receive_text(end_)) {
    ReportSetting setting;
    setting.name = "view";
    setting.configuration = configuration(load_);
    setting.configuration.function_name = *function;
    setting.seconds = 1;
    Json json;
    try {
      Report report;
      report.settings.push_back(measured_apart({load_, {}}, setting));
      json = Json::parse(to_json(report))["settings"][0];
    } catch (const std::exception& e) {
      json = {{"error", e.what()}};
    }
    if (!send_text(end_, json.dump(-1, ' ', false, Json::error_handler_t::replace))) break;
  }
  _exit(0);
}

Json Measurer::report(const std::string& function) {
  if (!send_text(end_, function)) throw io::IoError("the process that measures has ended");
  const auto text = receive_text(end_);
  if (!text) throw io::IoError("the process that measures has ended");
  return Json::parse(*text);
}

}  // namespace moka::cli
