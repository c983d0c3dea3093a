// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "arguments.h"
#include "command.h"
#include "json.h"
#include "moka/recording.h"
#include "options.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct RecordOptions {
  LoadOptions load;
  InputOptions input;
  std::string file, inputs_file;
  std::vector<std::string> units;
  RecordingPlan plan;
  int64_t runs = 1;
  bool json = false;
};

FunctionDescription function_of(const RecordOptions& options) {
  const ModelDescription described = Model::describe(options.load.path);
  std::vector<std::string> names;
  for (const FunctionDescription& f : described.functions) {
    if (described.functions.size() == 1 && options.load.function.empty()) return f;
    if (f.name == (options.load.function.empty() ? described.default_function : options.load.function)) return f;
    names.push_back(f.name);
  }
  throw UsageError(fmt::format("--function {}: the model has {}", options.load.function, quoted_list(names)));
}

/// Given values need only the description, so that a model that Moka cannot run can be recorded.
std::vector<Features> inputs_of(const RecordOptions& options, const FunctionDescription& function) {
  if (!options.input.inputs.empty()) {
    Inputs inputs = read_inputs(function, options.input);
    for (const std::string& text : inputs.notes) note("record", text);
    return std::move(inputs.rows);
  }
  std::optional<Model> model;
  try {
    model = load(options.load, configuration(options.load));
  } catch (const Exception& e) {
    if (e.kind() != ErrorKind::unsupported) throw;
    note("record", fmt::format("the random inputs follow the description only: {}", e.what()));
  }
  std::vector<Features> out;
  for (int64_t i = 0; i < options.runs; ++i) {
    const uint64_t seed = options.input.seed + static_cast<uint64_t>(i);
    out.push_back(model ? model->random_inputs(seed) : random_inputs(function, seed));
  }
  return out;
}

int record(RecordOptions options, const Outputs& outputs) {
  options.load.path = without_trailing_slashes(options.load.path);
  use_keys(options.load.keys);
  const std::filesystem::path file(options.file);
  if (file.extension() != ".swift")
    throw UsageError(fmt::format("-o {}: expected a file that ends with .swift", options.file));
  RecordingPlan plan = options.plan;
  plan.model_name = std::filesystem::path(options.load.path).filename().string();
  plan.file_name = file.filename().string();
  plan.function = options.load.function;
  if (!options.units.empty()) plan.units.clear();
  for (const std::string& units : options.units) {
    LoadOptions named;
    named.compute_units = units;
    plan.units.push_back(configuration(named).compute_units);
  }
  const std::filesystem::path beside = std::filesystem::path(file).replace_extension(".inputs.json");
  if (!options.inputs_file.empty()) options.input.inputs.push_back("@" + options.inputs_file);
  const FunctionDescription function = function_of(options);
  const RecordingProgram program =
      recording_program(function, inputs_of(options, function), plan, beside.filename().string());
  if (!program.inputs.empty()) outputs.check(beside.string(), FileKind::json);
  outputs.write(file, FileKind::source, program.source);
  Json files = Json::array({file.string()});
  if (!program.inputs.empty()) {
    outputs.write(beside, FileKind::json, program.inputs);
    files.push_back(beside.string());
  }
  if (options.json) {
    print(rendered(Json{{"generated", files}}));
    return kFine;
  }
  std::string text;
  for (const Json& one : files) text += one.get<std::string>() + "\n";
  print(text);
  return kFine;
}

}  // namespace

Command add_record(Arguments parent) {
  auto options = std::make_shared<RecordOptions>();
  Arguments app = parent.add_subcommand("record", "Write a Swift program that records what Core ML does with a model");
  add_model(app, options->load);
  const auto outputs = Outputs::of(app);
  outputs->add_option("-o,--out", options->file, {{"", FileKind::source}}, "The Swift file")
      .required()
      .option_text("FILE.swift");
  app.add_flag("--test", options->plan.is_test, "A class of XCTest, for phones, instead of a program");
  app.add_option("--units,--compute-units", options->units,
                 "all, cpuOnly, cpuAndGPU, cpuAndNeuralEngine (default: each of them)")
      .delimiter(',')
      .allow_extra_args(false)
      .check(one_of({"all", "cpuOnly", "cpuAndGPU", "cpuAndNeuralEngine"}))
      .option_text("UNITS,...");
  app.add_option("--predictions", options->plan.predictions, "How many each setting times (default 20)")
      .check(whole_number(1, 1'000'000))
      .option_text("N");
  app.add_option("--runs", options->runs, "How many random inputs, without --input (default 1)")
      .check(whole_number(1, 1000))
      .option_text("N");
  app.add_option("--full-bytes", options->plan.full_bytes,
                 "Arrays of more bytes are recorded by a sample of their elements (default 4194304)")
      .check(whole_number(0, int64_t{1} << 40))
      .option_text("N");
  app.add_option("--inputs", options->inputs_file, "The same as --input @FILE").option_text("FILE");
  add_input_options(app, options->input);
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer(
      "The program runs once on a Mac or a phone and writes a recording, which verify, diff, explain and report read.\n"
      "Example: moka record Model.mlpackage --input image=@cat.jpg -o Record.swift");
  return {app, "moka record Model.mlpackage -o Record.swift", [options, outputs] { return record(*options, *outputs); },
          outputs};
}

}  // namespace moka::cli
