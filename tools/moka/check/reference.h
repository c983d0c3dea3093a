// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "moka/model.h"

namespace moka::cli {

/// The other side of a comparison: another model, a recording, or a program in another framework.
class Reference {
 public:
  virtual ~Reference() = default;
  /// "Other.mlpackage", "net.onnx (onnxruntime 1.20.1)".
  virtual std::string name() const = 0;
  virtual const std::vector<FeatureDescription>& inputs() const = 0;
  virtual const std::vector<FeatureDescription>& outputs() const = 0;
  /// One answer for each item. The names are the reference's own.
  virtual std::vector<Features> predict(const std::vector<Features>& items) = 0;
  /// The inputs that a recorded answer was computed from, by the model's names. Empty: any inputs may be asked.
  virtual std::vector<Features> recorded_inputs() const { return {}; }
  /// The default threshold depends on its types. Null: not a Core ML model.
  virtual const Model* model() const { return nullptr; }
};

/// Which function of the Core ML model at `path` to compare with the function `name`. Empty: the model has only one.
std::string function_of_other(const std::string& path, const std::string& name);
std::unique_ptr<Reference> model_reference(Model model, std::string name);
/// .npz, a folder of .npy, or .json (docs/checking.md). Throws UsageError, IoError.
std::unique_ptr<Reference> saved_reference(const std::string& path, const FunctionDescription& function);
/// An ONNX file or a PyTorch program, which `python3` or $MOKA_PYTHON runs. Initializers that a caller may override are
/// optional inputs if `function` has an input of their name. Throws UsageError, IoError.
std::unique_ptr<Reference> python_reference(const std::string& path, const FunctionDescription& function);
/// Chooses by the path's ending. other_function: of a Core ML model; empty: that of `function_of_other`.
std::unique_ptr<Reference> open_reference(const std::string& path, const FunctionDescription& function,
                                          ModelConfiguration configuration, const std::string& other_function);

/// All predictions of a model, each with a new state.
std::vector<Features> predict_each(const Model& model, const std::vector<Features>& items, const std::string& label);

}  // namespace moka::cli
