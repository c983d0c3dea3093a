// SPDX-License-Identifier: Apache-2.0
#include "check/diff.h"

#include <fmt/format.h>

#include <memory>

#include "check/pairing.h"
#include "check/ranges.h"
#include "check/recordings.h"
#include "check/reference.h"
#include "check/verify.h"
#include "command.h"
#include "options.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct DiffCommandOptions {
  LoadOptions load;
  InputOptions input;
  DiffOptions diff;
  std::vector<std::string> map, ranges;
  std::string other, units, device, precision, function, tolerance, pixel_scale = "1", pixel_bias = "0";
  bool structure_only = false, ignore_structure = false, optimized = false, json = false;
};

/// The options that load the other side.
LoadOptions other_side(const DiffCommandOptions& options) {
  LoadOptions out = options.load;
  if (!options.other.empty()) {
    out.path = options.other;
    out.function = function_of_other(out.path, out.function);
    out.pins.clear();
    out.pin_file.clear();
  }
  if (!options.device.empty()) {
    out.device = options.device;
    out.compute_units = "all";
  }
  if (!options.precision.empty()) out.precision = options.precision;
  if (!options.function.empty()) out.function = options.function;
  return out;
}

/// Two recordings, or a model and a recording.
int diff_recordings(const DiffCommandOptions& options, bool first_is_recording) {
  if (first_is_recording) {
    if (!is_device_recording(options.other))
      throw UsageError("expected another recording after a recording; a model comes before its recording");
    const DeviceRecording first = read_device_recording(options.load.path),
                          second = read_device_recording(options.other);
    const RecordingComparison found = compare_recordings(first, second);
    print(options.json ? rendered(to_json(found, first, second)) : comparison_text(found, first, second));
    return found.same() ? kFine : kNo;
  }
  const DeviceRecording recording = read_device_recording(options.other);
  const Model model = load(options.load, configuration(options.load));
  const ComputeUnits units = recorded_units_named(options.units, recording, options.other);
  const auto reference = device_reference(recording, units, options.other, model.function());
  VerifyOptions verify;
  verify.map = parse_map(options.map, model.function(), reference->inputs(), reference->outputs());
  const Verification answers = verify_model(model, *reference, verify);
  const RecordedSetting& setting = *recording.find(units);
  const Placement placement = compare_placement(model.compute_plan(), model.structure(), setting);
  if (options.json) {
    Json json{{"model", options.load.path}};
    json.update(to_json(answers));
    add_placement(placement, recording, setting, json);
    print(rendered(json));
  } else {
    print(fact("model", options.load.path) + verification_text(answers) +
          (setting.operations.empty() ? "" : placement_text(placement, recording, setting, false)));
  }
  return answers.passed() ? kFine : kNo;
}

int run_diff(const DiffCommandOptions& options) {
  const bool first_is_recording = is_device_recording(options.load.path);
  if (first_is_recording || (!options.other.empty() && is_device_recording(options.other)))
    return diff_recordings(options, first_is_recording);
  if (!options.units.empty()) throw UsageError("--against-units: the other side is not a recording of 'moka record'");
  const bool other_settings = !options.device.empty() || !options.precision.empty();
  if (options.other.empty() && !other_settings && options.function.empty())
    throw UsageError(
        "expected another model, or --against-device, --against-precision or --against-function for the same one");
  DiffOptions how = options.diff;
  how.seed = options.input.seed;
  how.pixels = pixel_scale_of(options.pixel_scale, options.pixel_bias);
  if (!options.tolerance.empty()) {
    how.tolerance = parse_number(options.tolerance);
    if (!how.tolerance || !(*how.tolerance >= 0))
      throw UsageError(fmt::format("--tolerance: expected a number of at least 0, got '{}'", options.tolerance));
  }
  use_keys(options.load.keys);
  const LoadOptions other = other_side(options);
  Diff diff;
  diff.a = options.load.path;
  diff.b = other.path;
  if (!options.function.empty()) diff.b += ", function " + options.function;
  if (!options.device.empty()) diff.b += ", device " + options.device;
  if (!options.precision.empty()) diff.b += ", precision " + options.precision;
  diff.has_structure = !options.other.empty() || !options.function.empty();
  diff.ignores_structure = options.ignore_structure;
  if (options.structure_only && !diff.has_structure)
    throw UsageError("--structure-only: both sides have the same structure");
  diff.structure = compare_models(options.load.path, other.path, {options.load.function, other.function});
  if (!options.structure_only && diff.structure.fault.empty()) {
    // Every operation is computed, so that each value of one model has one in the other. The same model under other
    // settings runs as it does in predictions.
    const auto loaded = [&](const LoadOptions& load_options) {
      ModelConfiguration c = configuration(load_options);
      c.optimize = !diff.has_structure || options.optimized;
      return load(load_options, c);
    };
    const Model a = loaded(options.load), b = loaded(other);
    how.same_names = !diff.has_structure;
    how.map = parse_map(options.map, a.function(), b.function().inputs, b.function().outputs);
    how.ranges = ranges_of(options.ranges, a.function());
    if (!options.input.inputs.empty()) {
      Inputs inputs = read_inputs(a, options.input);
      for (const std::string& text : inputs.notes) note("diff", text);
      how.inputs = std::move(inputs.rows);
    }
    diff.values = diff_values(a, b, diff.structure, how);
  }
  print(options.json ? rendered(to_json(diff)) : diff_text(diff));
  return diff.same() ? kFine : kNo;
}

}  // namespace

Command add_diff(Arguments parent) {
  auto options = std::make_shared<DiffCommandOptions>();
  Arguments app = parent.add_subcommand("diff", "Show where two models differ: operations, weights and values");
  add_load_options(app, options->load);
  app.add_option("OTHER", options->other, "The other model, of any kind, or a recording of a device (moka record)")
      .option_text(" ");
  app.add_option("--against-units", options->units,
                 "The compute units of a recording whose answers and placement count (default: all, else the first)")
      .check(one_of({"all", "cpuOnly", "cpuAndGPU", "cpuAndNeuralEngine"}))
      .option_text("UNITS");
  app.add_option("--against-device", options->device, "The other side runs on this device, such as reference")
      .option_text("NAME");
  app.add_option("--against-precision", options->precision, "The other side computes by this rule: at-least or exact")
      .check(one_of({"at-least", "exact"}))
      .option_text("RULE");
  app.add_option("--against-function", options->function,
                 "The other side is this function (default: that of --function, where the other model has several)")
      .option_text("NAME");
  app.add_option("--map", options->map, "Pair an input or output with the other model's of another name")
      .allow_extra_args(false)
      .option_text("NAME=OTHER");
  app.add_option("--runs", options->diff.runs, "Random inputs (default 1), without --input")
      .check(whole_number(1, 1'000'000))
      .option_text("N");
  app.add_option("--range", options->ranges, "Random numbers of an array input (default 0:1)")
      .allow_extra_args(false)
      .option_text("NAME=LOW:HIGH");
  app.add_option("--pixel-scale", options->pixel_scale,
                 "Where the other model takes an array for an image: pixels times this, such as 1/255 (default 1)")
      .option_text("X");
  app.add_option("--pixel-bias", options->pixel_bias, "and plus this (default 0)").option_text("X");
  app.add_option("--tolerance", options->tolerance,
                 "Largest difference of a value, relative to its greatest magnitude (default: what rounding\n"
                 "explains: 2^-13; 2^-8 with float16; where one model has compressed weights, 20 dB of signal to\n"
                 "noise, or 10 dB less than the weights)")
      .option_text("X");
  app.add_flag("--structure-only", options->structure_only, "Compare operations and weights, and predict nothing");
  app.add_flag("--ignore-structure", options->ignore_structure, "The exit code depends on values only");
  app.add_flag("--optimized", options->optimized,
               "Compare the values of the optimized programs, in which operations are fused");
  add_input_options(app, options->input);
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer(
      "Exits with 1 when the models differ.\n"
      "Examples:\n"
      "  moka diff Net.mlpackage Other.mlpackage\n"
      "  moka diff Net.mlpackage Small.mlpackage --input image=@cat.jpg --ignore-structure\n"
      "  moka diff Net.mlpackage --against-device reference\n"
      "  moka diff phone.json mac.json, where both are recordings of one model");
  return {app, "moka diff Net.mlpackage Other.mlpackage", [options] { return run_diff(*options); }};
}

}  // namespace moka::cli
