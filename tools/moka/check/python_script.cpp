// SPDX-License-Identifier: Apache-2.0
#include "check/python_script.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "child.h"
#include "io/file.h"
#include "io/io_error.h"
#include "temporary_folder.h"

namespace moka::cli {

namespace {

std::string interpreter() {
  const char* named = std::getenv("MOKA_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

constexpr int kCannotStart = 127;

}  // namespace

void run_python(std::string_view script, const std::vector<std::string>& arguments, const std::string& subject) {
  const TemporaryFolder folder("python");
  const std::string python = interpreter(), errors = (folder.path() / "errors.txt").string();
  std::vector<std::string> words{python, "-c", std::string(script)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork_bound("Python");
  if (child == 0) {
    const int to = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int none = open("/dev/null", O_RDWR);
    dup2(none, STDIN_FILENO);
    dup2(to, STDERR_FILENO);
    dup2(to, STDOUT_FILENO);
    execvp(python.c_str(), argv.data());
    _exit(kCannotStart);
  }
  const int status = wait_for(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotStart)
    throw io::IoError(
        fmt::format("{}: the interpreter '{}' cannot be started; $MOKA_PYTHON names another one", subject, python));
  const io::Bytes bytes = io::read_file(errors);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t line = text.rfind('\n');
  if (line != std::string::npos) text.erase(0, line + 1);
  if (text.empty())
    text =
        fmt::format("the interpreter '{}' {}", python,
                    WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                        : fmt::format("ended with status {} and wrote nothing", WEXITSTATUS(status)));
  throw io::IoError(fmt::format("{}: {}", subject, text));
}

}  // namespace moka::cli
