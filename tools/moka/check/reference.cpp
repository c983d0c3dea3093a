// SPDX-License-Identifier: Apache-2.0
#include "check/reference.h"

#include <fmt/format.h>

#include <filesystem>

#include "options.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {

ComputeUnits recorded_units_named(const std::string& name, const DeviceRecording& recording, const std::string& path) {
  LoadOptions named;
  if (!name.empty()) {
    named.compute_units = name;
    return configuration(named).compute_units;
  }
  const RecordedSetting* all = recording.find(ComputeUnits::all);
  if (all != nullptr && !all->answers.empty()) return ComputeUnits::all;
  for (const RecordedSetting& s : recording.settings)
    if (!s.answers.empty()) return s.units;
  throw UsageError(fmt::format("{}: it has no answers", path));
}

std::string function_of_other(const std::string& path, const std::string& name) {
  return name.empty() || Model::describe(path).functions.size() < 2 ? std::string() : name;
}

std::unique_ptr<Reference> open_reference(const std::string& path, const FunctionDescription& function,
                                          ModelConfiguration configuration, const std::string& other_function,
                                          const std::string& recorded_units) {
  std::filesystem::path trimmed = path;
  if (trimmed.filename().empty()) trimmed = trimmed.parent_path();
  const std::string ending = in_lower_case(trimmed.extension().string());
  if (ending == ".json" && is_device_recording(trimmed)) {
    const DeviceRecording recording = read_device_recording(trimmed);
    return device_reference(recording, recorded_units_named(recorded_units, recording, path), path, function);
  }
  if (!recorded_units.empty())
    throw UsageError(fmt::format("--against-units: {} is not a recording of 'moka record'", path));
  if (ending == ".onnx" || ending == ".pt2") return python_reference(path, function);
  if (ending == ".npz" || ending == ".json") return saved_reference(path, function);
  const auto core_ml = [&] {
    configuration.function_name =
        other_function.empty() ? function_of_other(path, configuration.function_name) : other_function;
    return model_reference(Model::load(path, configuration), path);
  };
  if (ending == ".mlmodel" || ending == ".mlpackage" || ending == ".mlmodelc") return core_ml();
  std::error_code ignored;
  if (std::filesystem::is_directory(trimmed, ignored) && !std::filesystem::exists(trimmed / "Manifest.json", ignored) &&
      !std::filesystem::exists(trimmed / "coremldata.bin", ignored))
    return saved_reference(path, function);
  return core_ml();
}

}  // namespace moka::cli
