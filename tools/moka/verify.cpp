// SPDX-License-Identifier: Apache-2.0
#include "check/verify.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "check/pairing.h"
#include "check/ranges.h"
#include "check/reference.h"
#include "command.h"
#include "io/table.h"
#include "options.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct VerifyCommandOptions {
  LoadOptions load;
  InputOptions input;
  VerifyOptions verify;
  std::vector<std::string> map, ranges;
  std::string against, units, device, precision, function, shapes = "default";
  std::string min_snr, max_error, pixel_scale = "1", pixel_bias = "0";
  bool json = false;
};

std::optional<double> limit_of(const std::string& text, const char* option) {
  if (text.empty()) return std::nullopt;
  const auto number = parse_number(text);
  if (!number || std::isnan(*number)) throw UsageError(fmt::format("{}: expected a number, got '{}'", option, text));
  return number;
}

int run_verify(const VerifyCommandOptions& options) {
  const Model model = load(options.load, configuration(options.load));
  const bool other_settings = !options.device.empty() || !options.precision.empty();
  if (!options.units.empty() && options.against.empty()) throw UsageError("--against-units needs --against");
  if (!options.against.empty() ? other_settings : !other_settings && options.function.empty())
    throw UsageError("expected either --against, or --against-device, --against-precision or --against-function");
  std::unique_ptr<Reference> reference;
  if (options.against.empty()) {
    LoadOptions other = options.load;
    if (!options.device.empty()) {
      other.device = options.device;
      other.compute_units = "all";
    }
    if (!options.precision.empty()) other.precision = options.precision;
    if (!options.function.empty()) other.function = options.function;
    reference = model_reference(
        load(other, configuration(other)),
        fmt::format("the same model{}{}{}", options.function.empty() ? "" : ", function " + options.function,
                    options.device.empty() ? "" : ", device " + options.device,
                    options.precision.empty() ? "" : ", precision " + options.precision));
  } else {
    ModelConfiguration c = configuration(options.load);
    c.pins.clear();
    c.pinned_kernels.clear();
    reference = open_reference(options.against, model.function(), c, options.function, options.units);
  }
  VerifyOptions verify = options.verify;
  verify.seed = options.input.seed;
  verify.map = parse_map(options.map, model.function(), reference->inputs(), reference->outputs());
  verify.ranges = ranges_of(options.ranges, model.function());
  verify.pixels = pixel_scale_of(options.pixel_scale, options.pixel_bias);
  verify.all_shapes = options.shapes == "all";
  verify.min_snr = limit_of(options.min_snr, "--min-snr");
  verify.max_error = limit_of(options.max_error, "--max-error");
  if (!options.input.inputs.empty()) {
    Inputs inputs = read_inputs(model, options.input);
    for (const std::string& text : inputs.notes) note("verify", text);
    verify.inputs = std::move(inputs.rows);
  }
  size_t done = 0;
  std::optional<io::Progress> shown;
  verify.progress = [&](const VerifyProgress& p) {
    if (p.done == 0) shown.emplace(std::string(p.side), p.total);
    if (p.done > 0) shown->advance(p.done - done);
    done = p.done;
    if (p.done == p.total) shown.reset();
  };
  const Verification result = verify_model(model, *reference, verify);
  if (options.json) {
    Json json{{"model", options.load.path}};
    json.update(to_json(result));
    print(rendered(json));
  } else {
    print(fact("model", options.load.path) + verification_text(result));
  }
  return result.passed() ? kFine : kNo;
}

}  // namespace

Command add_verify(Arguments parent) {
  auto options = std::make_shared<VerifyCommandOptions>();
  Arguments app = parent.add_subcommand("verify", "Compare a model's answers with those of another model or recording");
  add_load_options(app, options->load);
  app.add_option("--against", options->against,
                 "Another Core ML model, an ONNX file or a PyTorch program (.pt2), which Python runs\n"
                 "($MOKA_PYTHON, else python3), or answers in .npz, a folder of .npy, or .json.\n"
                 "A device's recording (moka record) is also such a file.")
      .option_text("FILE");
  app.add_option("--against-units", options->units,
                 "The compute units of a recording whose answers count (default: all, else the first)")
      .check(one_of({"all", "cpuOnly", "cpuAndGPU", "cpuAndNeuralEngine"}))
      .option_text("UNITS");
  app.add_option("--against-device", options->device, "The same model on this device, such as reference")
      .option_text("NAME");
  app.add_option("--against-precision", options->precision, "The same model by this rule: at-least or exact")
      .check(one_of({"at-least", "exact"}))
      .option_text("RULE");
  app.add_option("--against-function", options->function,
                 "The reference's function, or another one of the same model (default: that of --function, where the\n"
                 "reference has several)")
      .option_text("NAME");
  app.add_option("--map", options->map, "Pair an input or output with the reference's of another name")
      .allow_extra_args(false)
      .option_text("NAME=OTHER");
  app.add_option("--runs", options->verify.runs, "Random inputs of each shape (default 3), without --input")
      .check(whole_number(1, 1'000'000))
      .option_text("N");
  app.add_option("--range", options->ranges, "Random numbers of an array input (default 0:1)")
      .allow_extra_args(false)
      .option_text("NAME=LOW:HIGH");
  app.add_option("--shapes", options->shapes, "default, or all: every enumerated shape and the corners of ranges")
      .check(one_of({"default", "all"}))
      .option_text("WHICH");
  app.add_option("--pixel-scale", options->pixel_scale,
                 "Where the reference takes an array for an image: pixels times this, such as 1/255 (default 1)")
      .option_text("X");
  app.add_option("--pixel-bias", options->pixel_bias, "and plus this (default 0)").option_text("X");
  app.add_option("--min-snr", options->min_snr,
                 "Least signal to noise in dB (default: 80; 40 with float16; 20 with compressed weights)")
      .option_text("DB");
  app.add_option("--max-error", options->max_error, "Largest absolute error of an element (default: any)")
      .option_text("X");
  app.add_option("--top-k", options->verify.top_k, "The reference's best class is among the K best each time")
      .check(whole_number(1, 1'000'000))
      .option_text("K");
  add_input_options(app, options->input);
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer(
      "Exits with 1 when the answers differ by more than allowed.\n"
      "Examples:\n"
      "  moka verify Net.mlpackage --against net.onnx\n"
      "  moka verify Small.mlpackage --against Net.mlpackage --input image=@cat.jpg --min-snr 30 --top-k 5\n"
      "  moka verify Net.mlpackage --against-device reference --shapes all");
  return {app, "moka verify Small.mlpackage --against Net.mlpackage", [options] { return run_verify(*options); }};
}

}  // namespace moka::cli
