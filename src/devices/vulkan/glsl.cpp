// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "devices/vulkan/spirv.h"

namespace moka::devices::vulkan {

namespace {

/// A new folder with the source, and then with what the compiler makes of it.
class Folder {
 public:
  Folder() {
    std::error_code error;
    std::string pattern = (std::filesystem::temp_directory_path(error) / "moka_glsl_XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  bool exists() const { return !path_.empty(); }
  std::string file(const char* name) const { return cat(path_, "/", name); }

 private:
  std::string path_;
};

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Runs the compiler without a shell. Its exit status, or -1 where it cannot be started. It ends with this process.
int run_compiler(const std::string& source, const std::string& output, const std::string& messages) {
  const char* named = std::getenv("MOKA_GLSLANG");
  const std::string program = named != nullptr ? named : "glslangValidator";
  std::string arguments[] = {program, "-V", "--target-env", "vulkan1.1", "-o", output, source};
  std::vector<char*> pointers;
  for (std::string& a : arguments) pointers.push_back(a.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    // The system sends the signal when the thread that forked ends, which waits below. A parent in another namespace
    // has the number 0.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (const pid_t now = getppid(); now != parent && now != 0) _exit(1);
    const int to = open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// "ERROR: shader.comp:3: 'a' : undeclared identifier", without the folder.
std::string first_error(const std::string& messages, const std::string& source) {
  const size_t at = messages.find("ERROR: ");
  if (at == std::string::npos) return "the compiler fails";
  std::string line = messages.substr(at, messages.find('\n', at) - at);
  if (const size_t path = line.find(source); path != std::string::npos) line.replace(path, source.size(), "shader");
  return line;
}

Result<std::vector<uint32_t>> compile(const std::string& source) {
  const Folder folder;
  if (!folder.exists()) return fail(ErrorCode::io, "a shader in GLSL without a folder for temporary files");
  const std::string from = folder.file("shader.comp"), to = folder.file("shader.spv"), said = folder.file("messages");
  if (!(std::ofstream(from, std::ios::binary) << source << std::flush))
    return fail(ErrorCode::io, "a shader in GLSL: '", from, "': cannot be written: ", std::strerror(errno));
  const int status = run_compiler(from, to, said);
  // 127: a shell's or the system's way to say that there is none.
  if (status == -1 || status == 127)
    return fail(ErrorCode::unsupported, "a shader in GLSL without the program glslangValidator");
  if (status != 0) return fail(ErrorCode::malformed, "GLSL: ", first_error(read_all(said), from));
  const std::string bytes = read_all(to);
  std::vector<uint32_t> words(bytes.size() / 4);
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * 4);
  return words;
}

}  // namespace

Result<std::shared_ptr<const std::vector<uint32_t>>> compile_glsl(const std::string& source) {
  static std::mutex mutex;
  static auto& compiled = *new std::map<std::string, std::shared_ptr<const std::vector<uint32_t>>>;
  const std::lock_guard lock(mutex);
  auto& made = compiled[source];
  if (made == nullptr) made = std::make_shared<const std::vector<uint32_t>>(MOKA_TRY(compile(source)));
  return made;
}

}  // namespace moka::devices::vulkan
