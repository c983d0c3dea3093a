// SPDX-License-Identifier: Apache-2.0
#include "inspect.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "command.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

/// The described function that the user asked for, or one that only the program has. Throws UsageError for other names.
FunctionDescription chosen_function(const ModelOutline& outline, const std::string& asked) {
  const std::string& name = asked.empty() ? outline.description.default_function : asked;
  std::vector<std::string> names;
  for (const FunctionDescription& function : outline.description.functions) {
    if (function.name == name) return function;
    names.push_back(function.name);
  }
  for (const auto& function : outline.structure.functions)
    if (function.name == name) return {.name = name};
  if (asked.empty()) return {.name = name};
  throw UsageError(fmt::format("the model has no function '{}'; it has {}", asked, quoted_list(names)));
}

struct Loaded {
  std::optional<Model> model;
  std::string refusal;  ///< why the model cannot be loaded
};

/// Loads the model on the device that takes every operation. Nothing runs here, so no kernel is prepared.
Loaded loaded(const InspectOptions& options) {
  ModelConfiguration c = configuration(options.load);
  c.optimize = options.optimized;
  if (!options.optimized) c.precision = Precision::exact;  // the types as the model declares them
  c.device = "reference";
  try {
    return {load(options.load, c), {}};
  } catch (const Exception& e) {
    if (options.mil) throw;
    return {std::nullopt, e.what()};
  }
}

int inspect(const InspectOptions& options) {
  use_keys(options.load.keys);
  if (options.mil && !options.json) {
    print(loaded(options).model->mil(options.optimized));
    return 0;
  }
  const Inspection inspection = Inspection::open(options.load.path);
  const FunctionDescription function = chosen_function(inspection.outline(), options.load.function);
  if (!options.json) {
    print(inspect_text(inspection, function, options));
    flush_output();
    const Loaded result = loaded(options);
    if (!result.model) print("\n" + paragraph("refused: " + result.refusal));
    return 0;
  }
  Json json = inspect_json(inspection, function, options);
  const Loaded result = loaded(options);
  if (!result.model) json["refused"] = result.refusal;
  if (options.mil) json["mil"] = result.model->mil(options.optimized);
  print(rendered(json));
  return 0;
}

}  // namespace

Command add_inspect(Arguments parent) {
  auto options = std::make_shared<InspectOptions>();
  Arguments app = parent.add_subcommand("inspect", "Show a model's inputs, outputs, metadata, operations and weights");
  add_model(app, options->load);
  const Option mil = app.add_flag("--mil", options->mil, "The program as MIL text");
  app.add_flag("--optimized", options->optimized, "With --mil: after Moka's passes").needs(mil).option_text(" ");
  app.add_flag("--layers", options->layers, "Every operation or layer with its sizes, window and weights");
  app.add_flag("--weights", options->weights,
               "Every weight with its type, size and range, its zeros and different values");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer(
      "Shows the content of the file even if Moka cannot run it; a last line 'refused:' then gives the reason.\n"
      "Example: moka inspect Classifier.mlpackage --layers");
  return {app, "moka inspect Classifier.mlpackage --layers", [options] { return inspect(*options); }};
}

}  // namespace moka::cli
