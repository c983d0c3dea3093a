// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "arguments.h"
#include "input.h"
#include "io/file.h"
#include "io/io_error.h"
#include "moka/custom.h"
#include "plugin.h"
#include "text.h"

namespace moka::cli {

void add_model(Arguments app, LoadOptions& options) {
  app.add_option("MODEL", options.path,
                 "An .mlmodel file, an .mlpackage or an .mlmodelc folder, or one that is encrypted")
      .required()
      .option_text(" ");
  app.add_option("--function", options.function, "Function of a model that has several").option_text("NAME");
  add_key_options(app, options.keys);
}

void add_load_options(Arguments app, LoadOptions& options) {
  add_model(app, options);
  app.add_option("--compute-units", options.compute_units, "all (default), cpuOnly, cpuAndGPU or cpuAndNeuralEngine")
      .check(one_of({"all", "cpuOnly", "cpuAndGPU", "cpuAndNeuralEngine"}))
      .option_text("UNITS");
  app.add_option("--device", options.device, "Only this device and 'reference'").option_text("NAME");
  app.add_option("--threads", options.threads, "Threads of one prediction (default: one for each core)")
      .check(whole_number(1, 1024))
      .option_text("N");
  app.add_option("--processors", options.processors,
                 "Bind worker threads to these processors, but not the calling thread (default: any)")
      .delimiter(',')
      .check(whole_number(0, 65535))
      .allow_extra_args(false)
      .option_text("N,N");
  app.add_option("--precision", options.precision,
                 "at-least (default): float16 may be computed in float32; exact: every value rounded to its type")
      .check(one_of({"at-least", "exact"}))
      .option_text("RULE");
  app.add_option("--kernels", options.kernels,
                 "Kernel cache: the file that 'moka tune' wrote, default for the user's own, or off\n"
                 "(default: $MOKA_KERNEL_CACHE, else off; tune: else default)")
      .option_text("FILE");
  app.add_option("--cache", options.cache,
                 "Folder that keeps packed weights for later loads, default for the user's own, or off\n"
                 "(default: $MOKA_CACHE, else off)")
      .option_text("DIR");
  app.add_flag("--low-memory", options.low_memory,
               "Keep weights as the file stores them, and expand them in every prediction");
  app.add_flag("--pack-while-loading", options.pack_while_loading,
               "Pack all weights while loading; otherwise predictions after the first one do");
  app.add_option("--pin", options.pins,
                 "Run operations on a device: a name (\"conv_*\", * is any text), type:TYPE or scope:PREFIX,\n"
                 "of operations or of a network's layers; the device's name, gpu or neuralEngine. The last matching "
                 "pin counts. Or by a kernel:\n"
                 "one operation, or all of a shape as explain --json writes it")
      .allow_extra_args(false)
      .option_text("OPERATIONS=DEVICE|KERNEL");
  app.add_option("--pins", options.pin_file, "A file of pins, one a line").option_text("FILE");
  app.add_flag("--strict", options.strict,
               "Fail when a pin matches nothing, or a device refuses a pinned operation or is lost");
  app.add_option("--parameters", options.parameters,
                 "Replace weights: a .npz file with an array for each. Or name weights that a program may replace;\n"
                 "* is any text")
      .allow_extra_args(false)
      .option_text("FILE|NAMES");
  app.add_option("--rates", options.rates,
                 "Measured rates of the units: a file, default for the user's own, or off\n"
                 "(default: $MOKA_RATES, else default; moka rates)")
      .option_text("FILE");
  app.add_option("--plugin", options.plugins,
                 "Custom layers and operations: a shared library with moka_plugin, or a Python file")
      .allow_extra_args(false)
      .option_text("FILE");
  app.add_option("--linked-models", options.linked,
                 "A folder in which the files of linked models may lie (default: none)")
      .allow_extra_args(false)
      .option_text("DIR");
  app.add_option("--rules", options.rules,
                 "Additional rules for the Neural Engine preview (default: $MOKA_NEURAL_ENGINE_RULES)")
      .option_text("FILE");
}

void add_input_options(Arguments app, InputOptions& options) {
  app.add_option("-i,--input", options.inputs,
                 "name=VALUE: a number, numbers (1,2,3 or [[1,2],[3,4]]), text, random,\n"
                 "or @file (.npy .npz[:member] .json .png .jpg .webp .y4m .nv12 .wav .flac .txt);\n"
                 "'random' alone fills every input that is not given; @file.npz, @file.json give\n"
                 "inputs by name. Several predictions come from the rows of @file.csv, from a list\n"
                 "in @file.json or from the lines of @file.jsonl")
      .allow_extra_args(false)
      .option_text("NAME=VALUE");
  app.add_option("--fit", options.fit, "How pictures fill an image input: scaleFill (default), scaleFit or centerCrop")
      .check(one_of({"scaleFill", "scaleFit", "centerCrop"}))
      .option_text("HOW");
  app.add_option("--frame", options.frame,
                 "Size of raw video (.nv12 .i420 .yuv .p010), of which the first frame is the picture; format\n"
                 "(nv12, nv12_full, i420, i420_full, p010, p010_full) and matrix (bt601, bt709, bt2020)\n"
                 "may follow after commas: 1920x1080,nv12,bt709")
      .option_text("WIDTHxHEIGHT");
  app.add_option("--rate", options.rate, "Resample sound to this sample rate first")
      .check(whole_number(1, 10'000'000))
      .option_text("HZ");
  app.add_flag("--pad", options.pad, "Make sound as long as the model wants: add silence, or cut the end off");
  app.add_option("--seed", options.seed, "Seed of random inputs (default 1)")
      .check(whole_number(0, INT64_MAX))
      .option_text("N");
}

std::string read_option_file(const std::string& option, const std::string& path) {
  try {
    return io::read_text(path);
  } catch (const io::IoError& e) {
    throw UsageError(fmt::format("{}: the file cannot be read: {}", option, e.what()));
  }
}

namespace {

/// Names of devices contain no dot; names of a device's kernels do.
void add_pins(const std::string& text, const std::string& from, ModelConfiguration& to) {
  std::vector<Pin> pins;
  try {
    pins = parse_pins(text);
  } catch (const Exception& e) {
    throw UsageError(fmt::format("{}: {}", from, e.what()));
  }
  for (Pin& pin : pins) {
    if (pin.device.find('.') != std::string::npos)
      to.pinned_kernels[pin.operations] = pin.device;
    else
      to.pins.push_back(std::move(pin));
  }
}

bool is_archive(std::string_view text) { return text.ends_with(".npz"); }

/// The arrays of the .npz files among --parameters, by name. Throws UsageError.
std::map<std::string, MultiArray> parameter_values(const LoadOptions& options) {
  std::map<std::string, MultiArray> out;
  for (const std::string& file : options.parameters) {
    if (!is_archive(file)) continue;
    try {
      const Features arrays = reading([&] { return read_npz(file); });
      if (arrays.empty()) throw UsageError(fmt::format("--parameters: {} has no arrays", file));
      for (const auto& [name, value] : arrays) {
        const auto* array = std::get_if<MultiArray>(&value);
        if (!array) throw UsageError(fmt::format("--parameters: {}: expected numbers in '{}', got text", file, name));
        out.insert_or_assign(name, *array);
      }
    } catch (const io::IoError& e) {
      throw UsageError(fmt::format("--parameters: {}", e.what()));
    }
  }
  return out;
}

}  // namespace

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
  c.low_memory = options.low_memory;
  c.pack_while_loading = options.pack_while_loading;
  c.strict = options.strict;
  c.rates = options.rates;
  c.neural_engine_rules = options.rules;
  if (!options.pin_file.empty()) add_pins(read_option_file("--pins", options.pin_file), options.pin_file, c);
  for (const std::string& pin : options.pins) add_pins(pin, "--pin", c);
  for (const std::string& names : options.parameters)
    if (!is_archive(names)) c.parameters.push_back(names);
  return c;
}

Model load(const LoadOptions& options, const ModelConfiguration& configuration) {
  use_keys(options.keys);
  load_plugins(options.plugins);
  if (!options.linked.empty()) set_linked_model_folders(options.linked);
  const std::map<std::string, MultiArray> values = parameter_values(options);
  try {
    if (values.empty()) return Model::load(options.path, configuration);
    ModelConfiguration with_names = configuration;
    for (const auto& [name, value] : values) with_names.parameters.push_back(name);
    return Model::load(options.path, with_names).with_parameters(values);
  } catch (const Exception& e) {
    std::error_code ignored;
    const bool asked = !options.function.empty() || !options.device.empty() || !options.pins.empty() ||
                       !options.pin_file.empty() || !options.parameters.empty();
    if (e.kind() == ErrorKind::not_found && asked && std::filesystem::exists(options.path, ignored))
      throw UsageError(e.what());
    throw;
  }
}

}  // namespace moka::cli
