// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "command.h"
#include "io/line.h"
#include "json.h"
#include "keys.h"
#include "moka/encryption.h"
#include "options.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kEnding = ".age";

struct EncryptOptions {
  std::string model, out, passphrase_file;
  std::vector<std::string> recipients, recipient_files;
  bool passphrase = false, json = false;
  KeyOptions keys;
};

int encrypt(const EncryptOptions& options, const Outputs& outputs) {
  EncryptionOptions lock;
  lock.recipients = options.recipients;
  for (const std::string& file : options.recipient_files)
    lock.recipients.push_back(read_option_file("--recipients-file", file));
  const bool with_passphrase = options.passphrase || !options.passphrase_file.empty();
  if (with_passphrase != lock.recipients.empty())
    throw UsageError("expected either recipients (-r, -R) or a passphrase (--passphrase, --passphrase-file)");
  if (with_passphrase) lock.passphrase = new_passphrase(options.passphrase_file);
  const std::string model = without_trailing_slashes(options.model);
  const std::string out = options.out.empty() ? model + std::string(kEnding) : options.out;
  outputs.check(out, FileKind::encrypted_model);
  lock.overwrite = outputs.overwrite();
  constexpr uint64_t step = 1 << 20;
  std::unique_ptr<io::Progress> progress;
  uint64_t shown = 0;
  lock.progress = [&](uint64_t done, uint64_t total) {
    if (!progress) progress = std::make_unique<io::Progress>("encrypting", total / step);
    for (; shown < done / step; ++shown) progress->advance();
  };
  encrypt_model(model, out, lock);
  progress.reset();
  std::error_code ignored;
  const auto bytes = fs::is_regular_file(out, ignored) ? fs::file_size(out, ignored) : 0;
  print(options.json ? rendered(Json{{"written", out}, {"bytes", bytes}})
                     : fmt::format("wrote {} ({})\n", out, format_bytes(static_cast<double>(bytes))));
  return 0;
}

int decrypt(const EncryptOptions& options, const Outputs& outputs) {
  use_keys(options.keys);
  std::string out = options.out;
  if (out.empty()) {
    if (!options.model.ends_with(kEnding))
      throw UsageError(
          fmt::format("'{}' does not end with {}; give the name of the model with -o", options.model, kEnding));
    out = options.model.substr(0, options.model.size() - kEnding.size());
  }
  outputs.check(out, FileKind::model);
  decrypt_model(options.model, out, nullptr, outputs.overwrite());
  print(options.json ? rendered(Json{{"written", out}}) : fmt::format("wrote {}\n", out));
  return 0;
}

}  // namespace

Command add_encrypt(Arguments parent) {
  auto options = std::make_shared<EncryptOptions>();
  Arguments app = parent.add_subcommand("encrypt", "Encrypt a model into a file that Moka and every age tool open");
  app.add_option("MODEL", options->model, "An .mlmodel file, an .mlpackage or an .mlmodelc folder")
      .required()
      .option_text(" ");
  app.add_option("-r,--recipient", options->recipients, "Public key \"age1...\" of someone who may open the model")
      .allow_extra_args(false)
      .option_text("RECIPIENT");
  app.add_option("-R,--recipients-file", options->recipient_files, "File with recipients, one a line")
      .allow_extra_args(false)
      .option_text("FILE");
  app.add_flag("--passphrase", options->passphrase, "Encrypt with a passphrase, which is asked for ($MOKA_PASSPHRASE)");
  app.add_option("--passphrase-file", options->passphrase_file, "Encrypt with the first line of a file")
      .option_text("FILE");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->out, {{"", FileKind::encrypted_model}},
                   "The file to write (default: MODEL.age)")
      .option_text("FILE");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka encrypt Classifier.mlpackage -r age1...");
  return {app, "moka encrypt Classifier.mlpackage -r age1...",
          [options, outputs] { return encrypt(*options, *outputs); }, outputs};
}

Command add_decrypt(Arguments parent) {
  auto options = std::make_shared<EncryptOptions>();
  Arguments app = parent.add_subcommand("decrypt", "Write the model in an encrypted file as plain files");
  app.add_option("FILE", options->model, "A file that 'moka encrypt' or age wrote").required().option_text(" ");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->out, {{"", FileKind::model}}, "The model to write (default: FILE without .age)")
      .option_text("MODEL");
  add_key_options(app, options->keys);
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka decrypt Classifier.mlpackage.age --identity secret.key");
  return {app, "moka decrypt Classifier.mlpackage.age --identity secret.key",
          [options, outputs] { return decrypt(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
