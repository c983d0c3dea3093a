// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "json.h"
#include "moka/compiler.h"
#include "moka/model.h"
#include "moka/rates.h"
#include "node_facts.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

/// The flags are coremlcompiler's.
struct CompileOptions {
  std::string model, folder, deployment_target, platform, sdkroot, partial_plist, container, encrypt, language, swift,
      cache = "default";
  std::string isa;  ///< of --plan; empty: this machine's best
  int threads = 0;
  bool print_categories = false, plan = false, verbose = false, json = false;
  bool embed = false, strict = false;
};

/// Writes an empty Info.plist, because a model adds no entries.
void write_plist(const std::string& path, const Outputs& outputs) {
  constexpr std::string_view text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n"
      "<plist version=\"1.0\">\n<dict/>\n</plist>\n";
  outputs.write(path, FileKind::property_list, text);
}

/// Compares versions such as "10.13.2" by their numbers.
bool older(const std::string& a, const std::string& b) {
  auto numbers = [](const std::string& text) {
    std::vector<unsigned long> out;
    for (size_t at = 0; at <= text.size();) {
      const size_t dot = std::min(text.find('.', at), text.size());
      out.push_back(std::strtoul(text.substr(at, dot - at).c_str(), nullptr, 10));
      at = dot + 1;
    }
    while (!out.empty() && out.back() == 0) out.pop_back();
    return out;
  };
  return numbers(a) < numbers(b);
}

void check_target(const CompileOptions& options) {
  if (options.deployment_target.empty()) return;
  const Json availability = Json::parse(model_metadata(options.model)).at(0).at("availability");
  std::string platform = in_lower_case(options.platform.empty() ? "iOS" : options.platform);
  if (platform == "xros") platform = "visionos";  // Xcode's name
  for (const auto& [name, version] : availability.items()) {
    if (in_lower_case(name) != platform) continue;
    if (older(options.deployment_target, version.get<std::string>()))
      note("compile", fmt::format("warning: the model needs {} {} or later, the deployment target is {}", name,
                                  version.get<std::string>(), options.deployment_target));
    return;
  }
  note("compile", fmt::format("warning: the platform '{}' is not known, and the deployment target is not checked",
                              options.platform));
}

/// Limits the CPU's kernels to an instruction set. Only before they are first used.
void use_isa(const std::string& name) {
  if (name.empty()) return;
  ::setenv("MOKA_MAX_CPU_ISA", name.c_str(), 1);
  const std::string machine = read_rates("off").units.at(0).description;
  const std::string_view expected = name == "base" ? "SSE" : name == "avx2" ? "AVX2" : "AVX-512";
  if (machine.find(expected) == std::string::npos)
    throw UsageError(fmt::format("--isa {}: this machine cannot pack for it; it has {}", name, machine));
}

/// Removes what killed processes left: folders of this name with the number of a process that does not exist.
void remove_unfinished(const fs::path& folder, const std::string& name) {
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(name)) continue;
    char* end = nullptr;
    const long process = std::strtol(file.c_str() + name.size(), &end, 10);
    if (process > 0 && *end == '\0' &&
        (process == getpid() || (::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH)))
      left.push_back(entry.path());
  }
  std::error_code ignored;
  for (const fs::path& path : left) fs::remove_all(path, ignored);
}

/// Puts a folder in the place of another. A reader sees either the old or the new one where the file system can
/// exchange two names.
void replace(const fs::path& next, const fs::path& out) {
  if (fs::exists(out) && ::renameat2(AT_FDCWD, next.c_str(), AT_FDCWD, out.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(next);
    return;
  }
  fs::remove_all(out);
  fs::rename(next, out);
}

/// What --json says of the networks that keep their specification.
Json rows_of(const std::vector<EmbeddedNetwork>& networks) {
  Json out = Json::array();
  for (const EmbeddedNetwork& n : networks)
    out.push_back({{"model", n.model}, {"layer", n.layer}, {"type", n.type}, {"reason", n.reason}});
  return out;
}

int compile(const CompileOptions& options, const Arguments& app, const Outputs& outputs) {
  for (const std::string& extra : app.remaining())
    note("compile", fmt::format("warning: '{}' is not known and has no effect", extra));
  if (options.print_categories) {
    print("model\n");
    return 0;
  }
  if (options.model.empty() || options.folder.empty()) throw UsageError("MODEL and OUTDIR are needed");
  if (!options.encrypt.empty())
    throw UsageError(
        "--encrypt: models encrypted for Apple's systems cannot be made; 'moka encrypt' encrypts models for Moka");
  if (!options.plan && (!options.isa.empty() || options.threads != 0))
    throw UsageError("--isa and --threads need --plan");
  if (options.strict && options.embed)
    throw UsageError("--strict forbids what --embed-specification asks for: leave one of them out");
  use_isa(options.isa);
  check_target(options);

  const fs::path source = without_trailing_slashes(options.model);
  const fs::path folder = options.folder;
  const fs::path out = folder / (source.stem().string() + ".mlmodelc");
  outputs.check(out.string(), FileKind::compiled_model);
  outputs.check(folder.string(), FileKind::folder);
  const std::string unfinished = fmt::format(".{}.", out.filename().string());
  if (fs::exists(folder)) remove_unfinished(folder, unfinished);
  const fs::path next = folder / (unfinished + std::to_string(getpid()));
  const auto embedded = compile_model(source.string(), next.string(), {options.embed, options.strict});
  for (const EmbeddedNetwork& network : embedded) note("compile", "remark: " + network.text);
  replace(next, out);
  if (!options.partial_plist.empty()) write_plist(options.partial_plist, outputs);
  Json facts{{"compiled", out.string()}, {"embedded", rows_of(embedded)}};
  std::string text = (out / "coremldata.bin").string() + "\n";
  if (options.verbose) {
    const Inspection inspection = Inspection::open(source.string());
    facts.update(layer_report_json(inspection));
    text = layer_report(inspection) + text;
  }
  if (options.plan) {
    ModelConfiguration configuration;
    configuration.cache = options.cache;
    configuration.threads = options.threads;
    const std::string file = Model::load(out.string(), configuration).cache_file();
    std::error_code none;
    const bool packed = !file.empty() && fs::exists(file, none);
    facts["cache"] = packed ? Json(file) : Json(nullptr);
    if (packed) text += file + "\n";
  }
  print(options.json ? rendered(facts) : text);
  return 0;
}

}  // namespace

Command add_compile(Arguments parent) {
  auto options = std::make_shared<CompileOptions>();
  Arguments app = parent.add_subcommand("compile", "Compile a model as coremlcompiler does: OUTDIR/NAME.mlmodelc");
  app.allow_extras();
  app.add_option("MODEL", options->model, "An .mlmodel file or an .mlpackage").option_text(" ");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("OUTDIR", options->folder, {{"", FileKind::folder}},
                   "Where the compiled model is made; an older one is replaced")
      .option_text(" ");
  app.add_option("--deployment-target", options->deployment_target,
                 "Warn where the model needs a later version of the platform")
      .option_text("VERSION");
  app.add_option("--platform", options->platform, "iOS (default), macOS, tvOS, watchOS, visionOS or macCatalyst")
      .option_text("NAME");
  app.add_option("--sdkroot", options->sdkroot, "Accepted for build systems; has no effect").option_text("DIR");
  outputs
      ->add_option("--output-partial-info-plist", options->partial_plist, {{"", FileKind::property_list}},
                   "Write an empty property list")
      .option_text("FILE");
  app.add_option("--container", options->container, "Accepted for build systems; has no effect").option_text("KIND");
  for (const auto& [flag, text] : {std::pair{"--language", &options->language}, {"--swift-version", &options->swift}})
    app.add_option(flag, *text, "Accepted for scripts that pass the flags of 'generate'; has no effect")
        .option_text("VALUE");
  app.add_option("--encrypt", options->encrypt, "Refused: only Apple's systems encrypt models").option_text("KEY");
  app.add_flag("--embed-specification", options->embed,
               "Keep neural networks as specifications instead of writing model.espresso.*");
  app.add_flag("--strict", options->strict,
               "Fail, and write nothing, where a network must keep its specification, which only Moka reads");
  app.add_flag("--plan", options->plan,
               "Also pack the weights for the CPU, so that the first load with --cache need not");
  app.add_option("--isa", options->isa, "With --plan: for machines with this set (default: this machine's)")
      .option_text("base|avx2|avx512")
      .check(one_of({"base", "avx2", "avx512"}));
  app.add_option("--threads", options->threads, "With --plan: for predictions with so many (default: all cores)")
      .option_text("N")
      .check(whole_number(1, 1024));
  app.add_option("--cache", options->cache, "With --plan: the folder of packed weights (default: the user's own)")
      .option_text("DIR");
  app.add_flag("--verbose", options->verbose, "Print every layer or operation with its kind, sizes and weights");
  app.add_flag("--print-diagnostic-categories", options->print_categories, "Print the categories of diagnostics");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka compile Classifier.mlpackage build");
  return {app, "moka compile Classifier.mlpackage build",
          [options, app, outputs] { return compile(*options, app, *outputs); }, outputs};
}

}  // namespace moka::cli
