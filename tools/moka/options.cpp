#include "options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "checks.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {

void add_model(CLI::App& app, LoadOptions& options) {
  app.add_option("MODEL", options.path, "An .mlmodel file, an .mlpackage or an .mlmodelc folder")
      ->required()
      ->option_text(" ");
  app.add_option("--function", options.function, "Function of a model that has several")->option_text("NAME");
}

void add_load_options(CLI::App& app, LoadOptions& options) {
  add_model(app, options);
  app.add_option("--compute-units", options.compute_units, "all (default), cpuOnly, cpuAndGPU or cpuAndNeuralEngine")
      ->check(one_of({"all", "cpuOnly", "cpuAndGPU", "cpuAndNeuralEngine"}))
      ->option_text("UNITS");
  app.add_option("--device", options.device, "Only this device and 'reference'")->option_text("NAME");
  app.add_option("--threads", options.threads, "Threads of one prediction (default: one for each core)")
      ->check(whole_number(1, 1024))
      ->option_text("N");
  app.add_option("--processors", options.processors,
                 "Bind worker threads to these processors; the calling thread stays where it is (default: any)")
      ->delimiter(',')
      ->check(whole_number(0, 65535))
      ->allow_extra_args(false)
      ->option_text("N,N");
  app.add_option("--precision", options.precision,
                 "at-least (default): float16 may be computed in float32; exact: every value rounded to its type")
      ->check(one_of({"at-least", "exact"}))
      ->option_text("RULE");
  app.add_option("--kernels", options.kernels,
                 "Kernel cache: the file that 'moka tune' wrote, default for the user's own, or off\n"
                 "(default: $MOKA_KERNEL_CACHE, else off; tune: default)")
      ->option_text("FILE");
  app.add_option("--cache", options.cache,
                 "Folder that keeps packed weights for later loads, default for the user's own, or off\n"
                 "(default: $MOKA_CACHE, else off)")
      ->option_text("DIR");
  app.add_option("--pin", options.pins,
                 "Run an operation, or all of a shape as explain --json writes it, by this kernel")
      ->allow_extra_args(false)
      ->option_text("OPERATION=KERNEL");
}

void add_input_options(CLI::App& app, InputOptions& options) {
  app.add_option("-i,--input", options.inputs,
                 "name=VALUE: a number, numbers (1,2,3 or [[1,2],[3,4]]), text, random,\n"
                 "or @file (.npy .npz[:member] .json .png .jpg .webp .wav .flac .txt);\n"
                 "'random' alone fills every input that is not given; @file.npz, @file.json give\n"
                 "inputs by name. Several predictions come from the rows of @file.csv, from a list\n"
                 "in @file.json or from the lines of @file.jsonl")
      ->allow_extra_args(false)
      ->option_text("NAME=VALUE");
  app.add_option("--fit", options.fit, "How pictures fill an image input: scaleFill (default), scaleFit or centerCrop")
      ->check(one_of({"scaleFill", "scaleFit", "centerCrop"}))
      ->option_text("HOW");
  app.add_option("--rate", options.rate, "Resample sound to this sample rate first")
      ->check(whole_number(1, 10'000'000))
      ->option_text("HZ");
  app.add_flag("--pad", options.pad, "Make sound as long as the model wants: add silence, or cut the end off");
  app.add_option("--seed", options.seed, "Seed of random inputs (default 1)")
      ->check(whole_number(0, INT64_MAX))
      ->option_text("N");
}

ModelConfiguration configuration(const LoadOptions& options) {
  ModelConfiguration c;
  if (options.compute_units == "cpuOnly") c.compute_units = ComputeUnits::cpu_only;
  if (options.compute_units == "cpuAndGPU") c.compute_units = ComputeUnits::cpu_and_gpu;
  if (options.compute_units == "cpuAndNeuralEngine") c.compute_units = ComputeUnits::cpu_and_neural_engine;
  if (options.precision == "exact") c.precision = Precision::exact;
  c.function_name = options.function;
  c.threads = options.threads;
  c.processors = options.processors;
  c.device = options.device;
  c.kernel_cache = options.kernels;
  c.cache = options.cache;
  for (const std::string& pin : options.pins) {
    const size_t at = pin.rfind('=');
    if (at == std::string::npos || at == 0 || at + 1 == pin.size())
      throw UsageError(fmt::format("--pin {}: expected OPERATION=KERNEL", pin));
    c.pinned_kernels[pin.substr(0, at)] = pin.substr(at + 1);
  }
  return c;
}

Model load(const LoadOptions& options, const ModelConfiguration& configuration) {
  try {
    return Model::load(options.path, configuration);
  } catch (const Exception& e) {
    std::error_code ignored;
    const bool asked = !options.function.empty() || !options.device.empty() || !options.pins.empty();
    if (e.kind() == ErrorKind::not_found && asked && std::filesystem::exists(options.path, ignored))
      throw UsageError(e.what());
    throw;
  }
}

}  // namespace moka::cli
