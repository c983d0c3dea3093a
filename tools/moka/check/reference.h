// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "moka/recording.h"
#include "moka/verify.h"

namespace moka::cli {

/// Which function of the Core ML model at `path` to compare with the function `name`. Empty: the model has only one.
std::string function_of_other(const std::string& path, const std::string& name);
/// .npz, a folder of .npy, or .json (docs/checking.md). Throws UsageError, IoError.
std::unique_ptr<Reference> saved_reference(const std::string& path, const FunctionDescription& function);
/// An ONNX file or a PyTorch program, which `python3` or $MOKA_PYTHON runs. Initializers that a caller may override are
/// optional inputs if `function` has an input of their name. Throws UsageError, IoError.
std::unique_ptr<Reference> python_reference(const std::string& path, const FunctionDescription& function);
/// "float32". Throws UsageError, beginning with `where`, for types that arrays of numbers do not have.
DataType type_named(const std::string& name, const std::string& where);
/// Chooses by the path's ending. other_function: of a Core ML model; empty: that of `function_of_other`.
/// recorded_units: of a recording; empty: `all`, else the first with answers.
std::unique_ptr<Reference> open_reference(const std::string& path, const FunctionDescription& function,
                                          ModelConfiguration configuration, const std::string& other_function,
                                          const std::string& recorded_units = {});
/// The units that a name means, where `recording` has answers of them. Empty: `all`, else the first that it has. Throws
/// UsageError.
ComputeUnits recorded_units_named(const std::string& name, const DeviceRecording& recording, const std::string& path);

}  // namespace moka::cli
