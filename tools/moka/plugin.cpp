// SPDX-License-Identifier: Apache-2.0
#include "plugin.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "child.h"
#include "moka/custom.h"
#include "usage_error.h"

namespace moka::cli {

namespace {

/// The arguments of this process, without its name.
std::vector<std::string> own_arguments() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> out;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\0', at), all.size());
    out.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  if (!out.empty()) out.erase(out.begin());
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& t : texts) out.push_back(t.data());
  out.push_back(nullptr);
  return out;
}

bool has_package(const std::string& python) {
  std::vector<std::string> command{python, "-c",
                                   "import importlib.util, sys\nsys.exit(importlib.util.find_spec('moka') is None)"};
  const std::vector<char*> argv = pointers(command);
  const pid_t child = fork_bound("Python");
  if (child == 0) {
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  const int status = wait_for(child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

[[noreturn]] void run_in_python(const std::string& path) {
  const char* given = std::getenv("MOKA_PYTHON");
  const std::string python = given != nullptr && *given != '\0' ? given : "python3";
  if (!has_package(python))
    throw UsageError(
        fmt::format("--plugin {}: a Python file needs {} with the package moka-coreml (pip install moka-coreml; "
                    "MOKA_PYTHON names another Python)",
                    path, python));
  std::vector<std::string> command{python, "-m", "moka"};
  const std::vector<std::string> own = own_arguments();
  command.insert(command.end(), own.begin(), own.end());
  const std::vector<char*> argv = pointers(command);
  ::execvp(argv[0], argv.data());
  throw UsageError(fmt::format("--plugin {}: {} cannot be started", path, python));
}

}  // namespace

void load_plugins(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (!std::filesystem::exists(path)) throw UsageError(fmt::format("--plugin {}: there is no such file", path));
    if (path.ends_with(".py")) run_in_python(path);
  }
  for (const std::string& path : paths) load_plugin(path);
}

}  // namespace moka::cli
