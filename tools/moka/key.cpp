#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "command.h"
#include "io/io_error.h"
#include "json.h"
#include "keys.h"
#include "moka/encryption.h"
#include "print.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct MakeKeyOptions {
  std::string out, of, passphrase_file;
  bool passphrase = false, json = false;
};

/// Writes a new file that only its owner can read.
void write_secret(const std::string& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST) throw UsageError(fmt::format("'{}' exists already and is not replaced", path));
  if (file < 0) throw io::IoError(fmt::format("'{}': {}", path, std::strerror(errno)));
  bool written = true;
  while (!bytes.empty() && written) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    written = n > 0;
    if (written) bytes.remove_prefix(static_cast<size_t>(n));
  }
  const int error = errno;
  if (::close(file) == 0 && written) return;
  ::unlink(path.c_str());
  throw io::IoError(fmt::format("'{}': {}", path, std::strerror(error)));
}

int show(const MakeKeyOptions& options) {
  const std::vector<std::string> recipients = recipients_of(read_identity_file(options.of));
  std::string text;
  for (const std::string& recipient : recipients) text += recipient + "\n";
  print(options.json ? rendered(Json{{"recipients", recipients}}) : text);
  return 0;
}

int key(const MakeKeyOptions& options) {
  if (!options.of.empty()) return show(options);
  const bool locked = options.passphrase || !options.passphrase_file.empty();
  if (locked && options.out.empty()) throw UsageError("--passphrase: give the file for the encrypted identity with -o");
  EncryptionOptions lock;
  if (locked) lock.passphrase = new_passphrase(options.passphrase_file);
  const KeyPair pair = generate_key_pair();
  const std::string text = fmt::format("# public key: {}\n{}\n", pair.recipient, pair.identity);
  if (options.out.empty()) {
    print(options.json ? rendered(Json{{"recipient", pair.recipient}, {"identity", pair.identity}}) : text);
    return 0;
  }
  if (locked) {
    const auto sealed = encrypt(std::as_bytes(std::span(text)), lock);
    write_secret(options.out, {reinterpret_cast<const char*>(sealed.data()), sealed.size()});
  } else {
    write_secret(options.out, text);
  }
  print(options.json ? rendered(Json{{"recipient", pair.recipient}, {"written", options.out}})
                     : fmt::format("{}\n", pair.recipient));
  return 0;
}

}  // namespace

Command add_key(Arguments parent) {
  auto options = std::make_shared<MakeKeyOptions>();
  Arguments app = parent.add_subcommand("key", "Make a key pair for encrypted models, in age's text form");
  app.add_option("-o,--out", options->out, "Write the secret identity to a new file and print the public recipient")
      .option_text("FILE");
  app.add_flag("--passphrase", options->passphrase, "Encrypt the identity with a passphrase, which is asked for");
  app.add_option("--passphrase-file", options->passphrase_file, "Encrypt the identity with the first line of a file")
      .option_text("FILE");
  app.add_option("--of", options->of, "Print the recipients of the identities in a file instead").option_text("FILE");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka key -o secret.key");
  return {app, "moka key -o secret.key", [options] { return key(*options); }};
}

}  // namespace moka::cli
