// SPDX-License-Identifier: Apache-2.0
#include "check/reference.h"

#include <filesystem>
#include <optional>

#include "input.h"
#include "io/table.h"
#include "text.h"

namespace moka::cli {
namespace {

class ModelReference : public Reference {
 public:
  ModelReference(Model model, std::string name) : model_(std::move(model)), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  const std::vector<FeatureDescription>& inputs() const override { return model_.function().inputs; }
  const std::vector<FeatureDescription>& outputs() const override { return model_.function().outputs; }
  const Model* model() const override { return &model_; }
  std::vector<Features> predict(const std::vector<Features>& items) override {
    return predict_each(model_, items, "reference");
  }

 private:
  Model model_;
  std::string name_;
};

}  // namespace

std::vector<Features> predict_each(const Model& model, const std::vector<Features>& items, const std::string& label) {
  io::Progress progress(label, items.size());
  std::vector<Features> out;
  for (const Features& inputs : items) {
    PredictionOptions options;
    std::optional<State> state;
    if (!model.function().states.empty()) options.state = &state.emplace(model.new_state());
    out.push_back(model.predict(inputs, options));
    progress.advance();
  }
  return out;
}

std::unique_ptr<Reference> model_reference(Model model, std::string name) {
  return std::make_unique<ModelReference>(std::move(model), std::move(name));
}

std::string function_of_other(const std::string& path, const std::string& name) {
  return name.empty() || Model::describe(path).functions.size() < 2 ? std::string() : name;
}

std::unique_ptr<Reference> open_reference(const std::string& path, const FunctionDescription& function,
                                          ModelConfiguration configuration, const std::string& other_function) {
  std::filesystem::path trimmed = path;
  if (trimmed.filename().empty()) trimmed = trimmed.parent_path();
  const std::string ending = in_lower_case(trimmed.extension().string());
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
