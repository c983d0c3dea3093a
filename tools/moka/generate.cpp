// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "command.h"
#include "json.h"
#include "moka/compiler.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

/// The flags are coremlcompiler's. Flags that have no effect here are among the extras.
struct GenerateOptions {
  std::string model, folder, language = "Objective-C", swift_version = "5";
  std::string deployment_target, platform, sdkroot, partial_plist, container;
  bool public_access = false, global_module = false, dry_run = false, json = false;
};

Language language_of(const std::string& name) {
  const std::pair<const char*, Language> languages[] = {{"swift", Language::swift},
                                                        {"objective-c", Language::objective_c},
                                                        {"c++", Language::cpp},
                                                        {"c", Language::c},
                                                        {"python", Language::python}};
  for (const auto& [known, language] : languages)
    if (in_lower_case(name) == known) return language;
  throw UsageError(fmt::format("--language {}: expected Swift, Objective-C, C++, C or Python", name));
}

int generate(const GenerateOptions& options, const Arguments& app, const Outputs& outputs) {
  for (const std::string& extra : app.remaining())
    if (!options.dry_run || extra != "yes")  // Xcode writes `--dry-run yes`
      note("generate", fmt::format("warning: '{}' is not known and has no effect", extra));
  const auto sources = generate_interface(options.model, {language_of(options.language), options.swift_version,
                                                          options.public_access, options.global_module});
  if (!options.dry_run) outputs.make_folder(options.folder);
  Json files = Json::array();
  std::string text;
  for (const auto& [name, source] : sources) {
    const fs::path path = fs::path(options.folder) / name;
    if (!options.dry_run) outputs.write(path, FileKind::source, source);
    files.push_back(path.string());
    text += path.string() + "\n";
  }
  print(options.json ? rendered(Json{{"generated", files}}) : text);
  return 0;
}

}  // namespace

Command add_generate(Arguments parent) {
  auto options = std::make_shared<GenerateOptions>();
  Arguments app = parent.add_subcommand("generate", "Write source code that loads a model and predicts with types");
  app.allow_extras();
  app.add_option("MODEL", options->model, "An .mlmodel file, an .mlpackage or an .mlmodelc folder")
      .required()
      .option_text(" ");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("OUTDIR", options->folder, {{"", FileKind::folder}}, "Where the sources go; older ones are replaced")
      .required()
      .option_text(" ");
  app.add_option("--language", options->language, "Objective-C (default), Swift, C++, C or Python").option_text("NAME");
  app.add_option("--swift-version", options->swift_version, "Version of the language for Swift sources (default 5)")
      .option_text("VERSION");
  app.add_flag("--public-access", options->public_access, "Swift: declare everything public");
  app.add_flag("--globalmodule", options->global_module, "Swift: make the classes usable from Objective-C");
  app.add_flag("--dry-run", options->dry_run, "Print the names of the files and write none");
  for (const auto& [flag, text] : {std::pair{"--deployment-target", &options->deployment_target},
                                   {"--platform", &options->platform},
                                   {"--sdkroot", &options->sdkroot},
                                   {"--output-partial-info-plist", &options->partial_plist},
                                   {"--container", &options->container}})
    app.add_option(flag, *text, "Accepted for build systems; has no effect").option_text("VALUE");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka generate Classifier.mlpackage src --language C++");
  return {app, "moka generate Classifier.mlpackage src --language C++",
          [options, app, outputs] { return generate(*options, app, *outputs); }, outputs};
}

}  // namespace moka::cli
