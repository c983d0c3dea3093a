// SPDX-License-Identifier: Apache-2.0
#include "keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>

#include "moka/encryption.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

/// The terminal of this process; its echo is off while this exists.
class QuietTerminal {
 public:
  QuietTerminal() : file_(::open("/dev/tty", O_RDWR | O_CLOEXEC)) {
    if (file_ < 0 || ::tcgetattr(file_, &before_) != 0) return;
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    changed_ = ::tcsetattr(file_, TCSAFLUSH, &quiet) == 0;
  }
  ~QuietTerminal() {
    if (changed_) ::tcsetattr(file_, TCSAFLUSH, &before_);
    if (file_ >= 0) ::close(file_);
  }
  QuietTerminal(const QuietTerminal&) = delete;
  QuietTerminal& operator=(const QuietTerminal&) = delete;
  bool works() const { return changed_; }
  std::string ask(const std::string& question) {
    say(question);
    std::string line;
    for (char c = 0; ::read(file_, &c, 1) == 1 && c != '\n';) line += c;
    say("\n");
    return line;
  }

 private:
  void say(const std::string& text) { (void)!::write(file_, text.data(), text.size()); }
  int file_;
  termios before_{};
  bool changed_ = false;
};

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::string passphrase_of(const KeyOptions& options, const std::string& model) {
  if (!options.passphrase_file.empty()) return read_passphrase_file(options.passphrase_file);
  if (is_set("MOKA_PASSPHRASE") || is_set("MOKA_PASSPHRASE_FILE")) return {};  // the library reads them
  QuietTerminal terminal;
  return terminal.works() ? terminal.ask(fmt::format("Passphrase for {}: ", model)) : std::string();
}

}  // namespace

void add_key_options(Arguments app, KeyOptions& options) {
  app.add_option("--identity", options.identities,
                 "File with the identity that opens an encrypted model (default: $MOKA_IDENTITY)")
      .allow_extra_args(false)
      .option_text("FILE");
  app.add_option("--passphrase-file", options.passphrase_file,
                 "File whose first line is the passphrase (default: $MOKA_PASSPHRASE, $MOKA_PASSPHRASE_FILE,\n"
                 "else asked on the terminal)")
      .option_text("FILE");
}

void use_keys(const KeyOptions& options) {
  set_key_source([options](const KeyRequest& request) -> std::string {
    if (request.passphrase) return passphrase_of(options, request.model);
    std::string text;
    for (const std::string& file : options.identities) text += read_identity_file(file) + "\n";
    if (options.identities.size() == 1) text.pop_back();  // an encrypted file of identities stays as it is
    return text;
  });
}

std::string new_passphrase(const std::string& file) {
  if (!file.empty()) return read_passphrase_file(file);
  if (is_set("MOKA_PASSPHRASE")) return std::getenv("MOKA_PASSPHRASE");
  if (is_set("MOKA_PASSPHRASE_FILE")) return read_passphrase_file(std::getenv("MOKA_PASSPHRASE_FILE"));
  QuietTerminal terminal;
  if (!terminal.works())
    throw UsageError("--passphrase: there is no terminal to ask on; give --passphrase-file or MOKA_PASSPHRASE");
  std::string passphrase = terminal.ask("Passphrase: ");
  if (passphrase.empty()) throw UsageError("--passphrase: expected a passphrase, got an empty line");
  if (terminal.ask("Again: ") != passphrase) throw UsageError("--passphrase: the two passphrases differ");
  return passphrase;
}

}  // namespace moka::cli
