// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <span>

#include "command.h"
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

int show(const MakeKeyOptions& options) {
  const std::vector<std::string> recipients = recipients_of(read_identity_file(options.of));
  std::string text;
  for (const std::string& recipient : recipients) text += recipient + "\n";
  print(options.json ? rendered(Json{{"recipients", recipients}}) : text);
  return 0;
}

int key(const MakeKeyOptions& options, const Outputs& outputs) {
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
    outputs.write(options.out, FileKind::identity, std::span(sealed));
  } else {
    outputs.write(options.out, FileKind::identity, text);
  }
  print(options.json ? rendered(Json{{"recipient", pair.recipient}, {"written", options.out}})
                     : fmt::format("{}\n", pair.recipient));
  return 0;
}

}  // namespace

Command add_key(Arguments parent) {
  auto options = std::make_shared<MakeKeyOptions>();
  Arguments app = parent.add_subcommand("key", "Make a key pair for encrypted models, in age's text form");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->out, {{"", FileKind::identity}},
                   "Write the secret identity to a new file and print the public recipient")
      .option_text("FILE");
  app.add_flag("--passphrase", options->passphrase, "Encrypt the identity with a passphrase, which is asked for");
  app.add_option("--passphrase-file", options->passphrase_file, "Encrypt the identity with the first line of a file")
      .option_text("FILE");
  app.add_option("--of", options->of, "Print the recipients of the identities in a file instead").option_text("FILE");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka key -o secret.key");
  return {app, "moka key -o secret.key", [options, outputs] { return key(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
