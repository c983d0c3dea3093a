// SPDX-License-Identifier: Apache-2.0
#include "import/outline.h"

#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

#include "format/proto/model.pb.h"
#include "import/importer.h"
#include "import/model_type.h"
#include "import/outline/window.h"
#include "ir/op_def.h"

namespace moka::import {
namespace {

constexpr int kMaxModelDepth = 16;

/// The unknown field of Model.Type that a model sets. Protobuf keeps unknown fields.
std::string unknown_type(const proto::Model& model) {
  constexpr uint32_t kFirst = 200;  // fields below are not types
  const std::string bytes = model.SerializeAsString();
  for (protozero::pbf_reader reader(bytes); reader.next(); reader.skip())
    if (reader.tag() >= kFirst) return cat("unknown (field ", reader.tag(), ")");
  return "none";
}

using format::pipeline_of;

/// Compilers of recent versions of Xcode write this file. Its keys are not known, so it is shown as it is.
void add_rank_info(const format::ModelFile& file, Outline& out) {
  constexpr const char* kName = "model.rank.info.json";
  const auto text = file.weights().file(kName);
  if (!text.ok()) return;
  const std::string_view content = text->text();
  const auto json = nlohmann::json::parse(content.begin(), content.end(), nullptr, false);
  if (json.is_discarded())
    out.faults.push_back(cat(kName, ": expected JSON"));
  else
    out.facts.emplace_back(kName, json.dump());
}

Outline outline_of(const proto::Model& model, const format::ModelFile& file, int depth) {
  Outline out;
  const int type = model_type(model, file);
  out.type = model_type_name(type);
  if (out.type.empty()) out.type = unknown_type(model);
  for (const auto& feature : model.description().input()) out.inputs.push_back(feature.name());
  for (const auto& feature : model.description().output()) out.outputs.push_back(feature.name());
  if (depth > kMaxModelDepth) {
    out.faults.push_back(cat("models nested more than ", kMaxModelDepth, " deep"));
    return out;
  }
  if (pipeline_of(model) != nullptr) {
    const std::vector<std::string> names = outline_names(model);
    for (const auto& stage : file.stages(model)) {
      const size_t i = out.stages.size();
      const bool named = i < names.size() && !names[i].empty();
      out.stages.push_back({named ? names[i] : cat("model", i), outline_of(*stage.model, stage.file, depth + 1)});
    }
    return out;
  }
  switch (type) {
    case kMLProgram:
      if (model.has_mlprogram())
        outline_program(model.mlprogram(), file, out);
      else
        outline_text(file.mil_text().text(), file.weights(), out);
      add_windows(out);
      add_image_operations(model, out);
      break;
    case proto::Model::kNeuralNetwork:
    case proto::Model::kNeuralNetworkClassifier:
    case proto::Model::kNeuralNetworkRegressor:
      if (file.compiled() != nullptr && &model == &file.spec() && !has_layers(model))
        outline_espresso(file, out);
      else
        outline_network(model, file, out);
      if (file.compiled() != nullptr) add_rank_info(file, out);
      break;
    default: outline_classic(model, file, out);
  }
  return out;
}

}  // namespace

bool has_layers(const proto::Model& model) {
  return model.neuralnetwork().layers_size() + model.neuralnetworkclassifier().layers_size() +
             model.neuralnetworkregressor().layers_size() >
         0;
}

WeightFiles::~WeightFiles() {
  for (const auto& [path, missing] : missing_)
    out_.faults.push_back(cat("weights of ", missing.weights, missing.weights == 1 ? " array" : " arrays",
                              " cannot be read: ", missing.reason));
}

void WeightFiles::add(Outline::Weight weight) {
  weight.storage = "file";
  auto fault = missing_.find(weight.path);
  const bool readable = fault == missing_.end() || fault->second.has_header;
  auto blob = readable ? store_.blob(weight.path, weight.offset) : Error(ErrorCode::malformed, "");
  weight.available = blob.ok();
  if (!blob.ok()) {
    if (fault == missing_.end()) {
      const auto file = store_.file(weight.path);
      const bool has_header = file.ok() && format::has_weight_header(*file);
      fault = missing_.emplace(weight.path, Missing{blob.error().to_string(), has_header}).first;
    }
    ++fault->second.weights;
  } else {
    const uint64_t expected = weight.bytes;
    weight.data = blob->data;
    weight.bytes = blob->data.size();
    if (expected != 0 && expected != weight.bytes)
      out_.faults.push_back(cat("weight '", weight.name, "': ", weight.type, " takes ", expected, " bytes, '",
                                weight.path, "' has ", weight.bytes, " at offset ", weight.offset));
  }
  out_.weights.push_back(std::move(weight));
}

std::string opset_name(std::string_view opset) {
  const auto known = ir::opset_from_string(opset);
  return std::string(known ? ir::to_string(*known) : opset);
}

std::string vector_type(std::string_view element, uint64_t count) {
  return cat("tensor<", element, ", [", count, "]>");
}

std::string array_type(std::string_view element, uint64_t count, const std::vector<int64_t>& shape, uint64_t spare) {
  uint64_t product = 1;
  std::string sizes;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(product, static_cast<uint64_t>(size), &product))
      return vector_type(element, count);
    sizes += cat(sizes.empty() ? "" : ", ", size);
  }
  if (shape.empty() || product > count || count - product > spare) return vector_type(element, count);
  return cat("tensor<", element, ", [", sizes, "]>");
}

bool listed(const ir::Type& type, uint64_t count) {
  if (type.dtype() == ir::DType::string) return false;
  return count >= 2 || (count == 1 && type.is_ranked() && type.shape().rank() > 0 && ir::is_float(type.dtype()));
}

Outline outline_of_text(std::string_view text, const format::WeightStore& weights) {
  Outline out;
  out.type = model_type_name(kMLProgram);
  outline_text(text, weights, out);
  add_windows(out);
  return out;
}

std::vector<std::string> outline_names(const proto::Model& model) {
  const proto::Pipeline* pipeline = pipeline_of(model);
  if (pipeline == nullptr) return {};
  return {pipeline->names().begin(), pipeline->names().end()};
}

Outline outline(const format::ModelFile& file) { return outline_of(file.spec(), file, 0); }

ModelDescription outline_description(const format::ModelFile& file, std::vector<std::string>& faults) {
  ModelDescription out = describe_readable(file.spec(), file, faults);
  out.type_name = model_type_name(model_type(file.spec(), file));
  if (out.type_name.empty()) out.type_name = unknown_type(file.spec());
  out.remarks = remarks_of(file);
  if (auto labels = class_labels(file.spec(), &file); labels.ok())
    out.class_labels = std::move(labels).value();
  else
    faults.push_back(cat("class labels: ", labels.error().to_string()));
  return out;
}

}  // namespace moka::import
