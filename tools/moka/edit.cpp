// SPDX-License-Identifier: Apache-2.0
#include "moka/edit.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "command.h"
#include "edit_actions.h"
#include "json.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct EditCommandOptions {
  std::string model, out;
  EditOptions actions;
  bool json = false;
};

int run_edit(const EditCommandOptions& options, const Arguments& app, const Outputs& outputs) {
  ModelSource source = ModelSource::open(options.model);
  std::vector<std::string> done;
  for (const auto& [name, value] : app.given()) {
    const EditAction* action = edit_action(name);
    if (action == nullptr) continue;
    try {
      source = action->apply != nullptr ? action->apply(source, value)
                                        : action->apply_named(source, value, name_of_model(options.model));
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("{} {}: {}", name, value, e.what()));
    } catch (const Exception& e) {
      const std::string text = fmt::format("{} {}: {}", name, value, e.what());
      if (e.kind() == ErrorKind::not_found || e.kind() == ErrorKind::unsupported) throw UsageError(text);
      throw Exception(e.kind(), text);
    }
    done.push_back(value.empty() ? name : fmt::format("{} {}", name, value));
  }
  edit::check(source);
  source.save(options.out, outputs.overwrite());
  if (options.json) {
    print(rendered(Json{{"written", options.out}, {"edits", done}}));
    return 0;
  }
  for (const std::string& line : done) print(line + "\n");
  print(fmt::format("wrote {}\n", options.out));
  return 0;
}

}  // namespace

Command add_edit(Arguments parent) {
  auto options = std::make_shared<EditCommandOptions>();
  Arguments app = parent.add_subcommand("edit", "Rename, retype, describe or cut a model, and save the result");
  app.add_option("MODEL", options->model, "An .mlmodel file or an .mlpackage").required().option_text(" ");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->out, {kSpecificationName, kPackageName},
                   "The .mlmodel or .mlpackage to write; MODEL itself with --force")
      .required()
      .option_text("OUT");
  add_edit_options(app, options->actions);
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer(
      "Edits are made in the order in which they are given. Nothing is written when one of them fails.\n"
      "Example: moka edit Net.mlpackage --rename x=image --type image=float16 --author me -o Net16.mlpackage");
  return {app, "moka edit Net.mlpackage --rename x=image -o Renamed.mlpackage",
          [options, app, outputs] { return run_edit(*options, app, *outputs); }, outputs};
}

}  // namespace moka::cli
