// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/reserved.h"
#include "compiler/generate/source.h"

namespace moka::compiler {
namespace {

using import::FeatureKind;

constexpr PixelFormats cpp_formats{"rgba8", "gray8", "gray_float32"};

std::string cpp_type(const Field& f) {
  switch (f.feature.kind) {
    case FeatureKind::int64: return "int64_t";
    case FeatureKind::float64: return "double";
    case FeatureKind::string: return "std::string";
    case FeatureKind::image: return "moka::Image";
    case FeatureKind::dictionary: return "moka::Dictionary";
    case FeatureKind::sequence: return f.feature.string_keys ? "moka::StringSequence" : "moka::Int64Sequence";
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return "moka::MultiArray";
}

std::string cpp_declared(const Field& f) {
  return cat(f.feature.optional ? cat("std::optional<", cpp_type(f), ">") : cpp_type(f), " ", f.identifier);
}

std::string initial(const Field& f) {
  if (f.feature.optional) return " = std::nullopt";
  const bool number = f.feature.kind == FeatureKind::int64 || f.feature.kind == FeatureKind::float64;
  return number ? " = 0" : "";
}

/// Parameters in the order of the inputs. C++ lets a call leave out only the last ones.
std::string parameters(const std::vector<Field>& inputs) {
  const auto is_required = [](const Field& f) { return !f.feature.optional; };
  const auto required = std::find_if(inputs.rbegin(), inputs.rend(), is_required).base() - inputs.begin();
  return each(inputs, ", ", [&](const Field& f) {
    return cat(cpp_declared(f), &f - inputs.data() >= required ? " = std::nullopt" : "");
  });
}

}  // namespace

Sources write_cpp(const import::ModelDescription& description, const std::string& model_name) {
  const Interface model = describe_interface(description, model_name, {false, cpp_reserved});
  Words w{{"class", model.class_name}, {"file", literal(model.resource + ".mlmodelc")}, {"include", "#include"}};
  w["summary"] = model.summary.empty() ? "" : cat("/// ", model.summary, " (", model.resource, ")");
  w["fields"] = each(model.inputs, "", [](const Field& f) {
    return cat("  /// ", documentation(f, cpp_formats), "\n  ", cpp_declared(f), initial(f), ";\n");
  });
  w["values"] = each(model.inputs, "", [](const Field& f) {
    return f.feature.optional
               ? cat("    if (", f.identifier, ") values[", literal(f.feature.name), "] = *", f.identifier, ";\n")
               : cat("    values[", literal(f.feature.name), "] = ", f.identifier, ";\n");
  });
  w["outputs"] = each(model.outputs, "", [](const Field& f) {
    return cat("  /// ", documentation(f, cpp_formats), "\n  const ", cpp_type(f), "& ", f.identifier,
               "() const { return std::get<", cpp_type(f), ">(values_.at(", literal(f.feature.name), ")); }\n");
  });
  w["parameters"] = parameters(model.inputs);
  w["passed"] = each(model.inputs, ", ", [](const Field& f) { return cat("std::move(", f.identifier, ")"); });
  w["convenience"] = model.inputs.empty() ? ""
                                          : fill(R"(
  $class$Output prediction($parameters$) const { return this->prediction($class$Input{$passed$}); }
)",
                                                 w);
  w["states"] = model.states.empty() ? ""
                                     : fill(R"(
  /// New buffers, filled with zeros, for PredictionOptions::state:
$names$  moka::State new_state() const { return model_.new_state(); }
)",
                                            {{"names", each(model.states, "", [](const Field& f) {
                                                return cat("  /// - ", documentation(f, cpp_formats), "\n");
                                              })}});
  const std::string text = fill(R"(#pragma once

// Generated from the model; edits are lost.

#include <dlfcn.h>

#include <cstdint>
#include <filesystem>
#include <future>
$include$ <moka/moka.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The model's inputs
struct $class$Input {
$fields$
  moka::Features features() const {
    moka::Features values;
$values$    return values;
  }
};

/// The model's outputs
class $class$Output {
 public:
  explicit $class$Output(moka::Features values) : values_(std::move(values)) {}

$outputs$  const moka::Features& features() const { return values_; }

 private:
  moka::Features values_;
};

/// Loads the model and predicts. Every function throws moka::Exception.
$summary$
class $class$ {
 public:
  /// The model that lies beside the program or library with this code
  explicit $class$(const moka::ModelConfiguration& configuration = {}) : $class$(path_of_model(), configuration) {}
  explicit $class$(const std::string& path, const moka::ModelConfiguration& configuration = {})
      : model_(moka::Model::load(path, configuration)) {}
  explicit $class$(moka::Model model) : model_(std::move(model)) {}

  static std::string path_of_model() {
    Dl_info info{};
    const bool found = dladdr(reinterpret_cast<void*>(&$class$::path_of_model), &info) != 0 && info.dli_fname != nullptr;
    std::filesystem::path code = found ? info.dli_fname : "";
    std::error_code none;
    // A program that was found in PATH is named without its folder.
    if (!code.has_parent_path()) code = std::filesystem::read_symlink("/proc/self/exe", none);
    return (code.parent_path() / $file$).string();
  }

  $class$Output prediction(const $class$Input& input, const moka::PredictionOptions& options = {}) const {
    return $class$Output(model_.predict(input.features(), options));
  }
$convenience$
  std::future<$class$Output> prediction_async($class$Input input) const {
    return std::async(std::launch::async, [model = *this, input = std::move(input)] { return model.prediction(input); });
  }

  std::vector<$class$Output> predictions(const std::vector<$class$Input>& inputs,
                                         const moka::PredictionOptions& options = {}) const {
    std::vector<moka::Features> values;
    for (const $class$Input& input : inputs) values.push_back(input.features());
    std::vector<$class$Output> results;
    for (moka::Features& result : model_.predict_batch(values, options)) results.emplace_back(std::move(result));
    return results;
  }
$states$
  const moka::Model& model() const { return model_; }

 private:
  moka::Model model_;
};
)",
                                w);
  return {{model.class_name + ".hpp", text}};
}

}  // namespace moka::compiler
