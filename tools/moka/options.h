// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "arguments.h"
#include "input.h"
#include "keys.h"
#include "moka/model.h"

namespace moka::cli {

/// The location of a model and the options for loading it.
struct LoadOptions {
  std::string path, compute_units = "all", function, precision = "at-least", device;
  int threads = 0;
  std::vector<int> processors;
  std::string kernels;            ///< ModelConfiguration::kernel_cache
  std::string cache;              ///< ModelConfiguration::cache
  std::vector<std::string> pins;  ///< "operations=device" or "operation=kernel"
  std::string pin_file, rates, rules;
  std::vector<std::string> parameters;  ///< ModelConfiguration::parameters, or .npz files of their values
  std::vector<std::string> plugins;     ///< what registers layers before the model is loaded
  std::vector<std::string> linked;      ///< folders in which linked models may lie
  bool low_memory = false;              ///< ModelConfiguration::low_memory
  bool pack_while_loading = false;      ///< ModelConfiguration::pack_while_loading
  bool strict = false;
  KeyOptions keys;  ///< of an encrypted model
};

/// Only MODEL, --function and the options of keys.
void add_model(Arguments app, LoadOptions& options);
/// MODEL, --function, --compute-units, --threads, --processors, --device, --precision, --kernels, --cache,
/// --low-memory, --pin, --pins, --strict, --parameters, --rates, --plugin, --linked-models, --rules.
void add_load_options(Arguments app, LoadOptions& options);
/// Adds --input and the options that control how files become inputs.
/// The text of a file that an option names. Throws UsageError.
std::string read_option_file(const std::string& option, const std::string& path);

void add_input_options(Arguments app, InputOptions& options);

ModelConfiguration configuration(const LoadOptions& options);

/// Throws UsageError when the requested function or device does not exist.
Model load(const LoadOptions& options, const ModelConfiguration& configuration);

}  // namespace moka::cli
