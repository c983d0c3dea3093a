// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "command.h"
#include "json.h"
#include "moka/compiler.h"
#include "print.h"
#include "text.h"

namespace moka::cli {
namespace {

struct DecompileOptions {
  std::string model, destination;
  bool json = false;
};

int decompile(const DecompileOptions& options, const Outputs& outputs) {
  decompile_model(options.model, options.destination, outputs.overwrite());
  print(options.json ? rendered(Json{{"written", options.destination}}) : "wrote " + options.destination + "\n");
  return 0;
}

}  // namespace

Command add_decompile(Arguments parent) {
  auto options = std::make_shared<DecompileOptions>();
  Arguments app = parent.add_subcommand("decompile", "Turn a compiled model back into an .mlpackage or .mlmodel");
  app.add_option("MODEL", options->model, "An .mlmodelc folder").required().option_text(" ");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("OUT", options->destination, {kPackageName, {"", FileKind::specification}},
                   "The .mlpackage or .mlmodel to write; ML programs need an .mlpackage")
      .required()
      .option_text(" ");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka decompile Classifier.mlmodelc Classifier.mlpackage");
  return {app, "moka decompile Classifier.mlmodelc Classifier.mlpackage",
          [options, outputs] { return decompile(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
