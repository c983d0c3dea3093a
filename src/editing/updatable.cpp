// SPDX-License-Identifier: Apache-2.0
#include "editing/updatable.h"

#include <algorithm>

#include "editing/infer.h"
#include "editing/network.h"
#include "editing/pipeline.h"
#include "editing/weights.h"
#include "format/model_file.h"
#include "import/update/update.h"

namespace moka::editing {

using format::Scalar;

Result<Message> learner_of(const Message& model) {
  Message out = model;
  for (std::string kind = MOKA_TRY(kind_of(out)); is_pipeline(kind); kind = MOKA_TRY(kind_of(out))) {
    const std::vector<Stage> stages = MOKA_TRY(stages_of(out));
    if (stages.empty()) return fail(ErrorCode::malformed, "the pipeline holds no model");
    out = stages.back().model;
  }
  return out;
}

namespace {

/// iOS 13, the first system that updates models.
constexpr int64_t kFirstVersion = 4;

Result<Message> network_of(const Message& learner) {
  const std::string kind = MOKA_TRY(kind_of(learner));
  if (!is_network(kind)) return fail(ErrorCode::unsupported, "expected a neural network, got ", name_of_kind(kind));
  return learner.child(kind);
}

/// Marks the model and the pipelines around it.
Status mark_models(Message model) {
  MOKA_TRY(model.set("isUpdatable", Scalar(true)));
  MOKA_TRY(need_version(model, kFirstVersion));
  if (!is_pipeline(MOKA_TRY(kind_of(model)))) return {};
  const std::vector<Stage> stages = MOKA_TRY(stages_of(model));
  if (stages.empty()) return fail(ErrorCode::malformed, "the pipeline holds no model");
  for (size_t i = 0; i + 1 < stages.size(); ++i) MOKA_TRY(Message(stages[i].model).clear("isUpdatable"));
  return mark_models(stages.back().model);
}

Result<Message> copy_of(const Message& feature) {
  Message out = MOKA_TRY(Message::make("FeatureDescription"));
  MOKA_TRY(out.set("name", Scalar(MOKA_TRY(text_of(feature, "name")))));
  MOKA_TRY(out.set("type", MOKA_TRY(feature.child("type"))));
  return out;
}

/// The model trains with its inputs and these; so do the pipelines around it, where no earlier model computes them.
Status set_training_inputs(Message model, const std::vector<Message>& own) {
  Message description = MOKA_TRY(model.edit("description"));
  std::vector<Message> inputs;
  for (const Message& input : MOKA_TRY(description.children("input"))) inputs.push_back(input.copy());
  for (const Message& input : own) inputs.push_back(input.copy());
  MOKA_TRY(description.set_all("trainingInput", inputs));
  if (!is_pipeline(MOKA_TRY(kind_of(model)))) return {};
  return set_training_inputs(MOKA_TRY(stages_of(model)).back().model, own);
}

Status mark_neighbors(const Message& model, const Message& learner) {
  const Message description = MOKA_TRY(learner.child("description"));
  const std::string label = MOKA_TRY(text_of(description, "predictedFeatureName"));
  std::vector<Message> own;
  for (const Message& output : MOKA_TRY(description.children("output")))
    if (MOKA_TRY(has_text(output, "name", label))) own.push_back(MOKA_TRY(copy_of(output)));
  MOKA_TRY(mark_models(model));
  return set_training_inputs(model, own);
}

/// The message of a layer's type, if its weights can be updated.
Result<Message> weights_holder(const Message& layer, const std::string& name) {
  const std::string type = MOKA_TRY(layer.which("layer"));
  if (type != "innerProduct" && type != "convolution" && type != "batchedMatmul")
    return fail(ErrorCode::unsupported, "layer '", name, "' (", type,
                "): expected a convolution, an innerProduct or a batchedMatmul; other layers cannot be updated");
  return layer.child(type);
}

Status refuse_float16(const Message& network) {
  for (const Message& layer : MOKA_TRY(network.children("layers"))) {
    bool found = false;
    MOKA_TRY(for_messages(layer, "WeightParams", [&](const Message& weight) -> Status {
      found = found || !MOKA_TRY(weight.packed("float16Value")).empty();
      return {};
    }));
    if (found)
      return fail(
          ErrorCode::unsupported, "layer '", MOKA_TRY(text_of(layer, "name")),
          "': its weights are float16, and Core ML computes such a network in float16, which cannot be updated");
  }
  return {};
}

}  // namespace

Result<Message> update_of(const Message& model) {
  Message network = MOKA_TRY(network_of(MOKA_TRY(learner_of(model))));
  return network.edit("updateParams");
}

Status make_updatable(Message model, const std::vector<std::string>& layers) {
  const Message learner = MOKA_TRY(learner_of(model));
  if (MOKA_TRY(kind_of(learner)) == "kNearestNeighborsClassifier") {
    if (!layers.empty())
      return fail(ErrorCode::not_found, "a nearest-neighbors classifier has no layers, got '", layers[0], "'");
    return mark_neighbors(model, learner);
  }
  Message network = MOKA_TRY(network_of(learner));
  MOKA_TRY(refuse_float16(network));
  if (layers.empty()) return fail(ErrorCode::invalid_argument, "expected the names of layers, got none");
  std::vector<Message> chosen;
  for (const std::string& name : layers) {
    for (const Message& layer : MOKA_TRY(network.children("layers")))
      if (MOKA_TRY(has_text(layer, "name", name))) chosen.push_back(layer);
    if (chosen.empty() || !MOKA_TRY(has_text(chosen.back(), "name", name)))
      return fail(ErrorCode::not_found, "the network has no layer '", name, "'");
    MOKA_TRY(weights_holder(chosen.back(), name));
  }
  for (Message layer : chosen) {
    MOKA_TRY(layer.set("isUpdatable", Scalar(true)));
    Message holder = MOKA_TRY(weights_holder(layer, ""));
    for (const char* field : {"weights", "bias"}) {
      Message weight = MOKA_TRY(holder.edit(field));
      MOKA_TRY(weight.set("isUpdatable", Scalar(true)));
    }
  }
  MOKA_TRY(mark_models(model));
  Message update = MOKA_TRY(network.edit("updateParams"));
  if (MOKA_TRY(update.count("shuffle")) > 0) return {};
  Message shuffle = MOKA_TRY(update.edit("shuffle"));
  return shuffle.set("defaultValue", Scalar(true));
}

namespace {

/// The value whose softmax the cross entropy reads.
Result<std::string> softmax_of(const Message& network, const std::string& wanted) {
  std::vector<std::string> found;
  for (const Message& layer : MOKA_TRY(network.children("layers"))) {
    const std::string type = MOKA_TRY(layer.which("layer"));
    const std::vector<std::string> results = MOKA_TRY(texts_of(layer, "output"));
    if ((type == "softmax" || type == "softmaxND") && !results.empty()) found.push_back(results[0]);
  }
  const bool has = std::find(found.begin(), found.end(), wanted) != found.end();
  if (!wanted.empty() && !has)
    return fail(ErrorCode::invalid_argument, "cross entropy: expected the result of a softmax as input, got '", wanted,
                "'");
  if (!wanted.empty()) return wanted;
  if (found.size() == 1) return found[0];
  return fail(ErrorCode::invalid_argument, "cross entropy: expected a network with one softmax, or the input, got ",
              found.size(), " of them");
}

/// The array that an output describes, or that a layer computes for inputs of the default sizes.
Result<std::vector<int64_t>> shape_of(const format::ModelSource& source, const Message& learner,
                                      const std::string& value) {
  const Message description = MOKA_TRY(learner.child("description"));
  for (const Message& output : MOKA_TRY(description.children("output"))) {
    if (!MOKA_TRY(has_text(output, "name", value))) continue;
    const Message type = MOKA_TRY(child_or_empty(output, "type"));
    const Message array = MOKA_TRY(child_or_empty(type, "multiArrayType"));
    if (std::vector<int64_t> shape = MOKA_TRY(integers_of(array, "shape")); !shape.empty()) return shape;
  }
  format::ModelSource alone = source;
  alone.specification = learner;
  const auto sizes = MOKA_TRY(network_sizes(alone));
  const auto size = sizes.find(value);
  if (size == sizes.end()) return fail(ErrorCode::not_found, "the network has no value '", value, "' of known size");
  const Message network = MOKA_TRY(network_of(learner));
  return described_size(size->second, MOKA_TRY(has_text(network, "arrayInputShapeMapping", "EXACT_ARRAY_MAPPING")));
}

Result<std::string> only_output(const Message& description) {
  std::vector<std::string> arrays;
  for (const Message& output : MOKA_TRY(description.children("output")))
    if (MOKA_TRY(MOKA_TRY(child_or_empty(output, "type")).which("Type")) == "multiArrayType")
      arrays.push_back(MOKA_TRY(text_of(output, "name")));
  if (arrays.size() == 1) return arrays[0];
  return fail(ErrorCode::invalid_argument,
              "mean squared error: expected a network with one array as output, or the input, got ", arrays.size(),
              " outputs");
}

/// What gives the target of a cross entropy: the label that a classifier predicts, or an index.
Result<Message> class_input(const std::string& kind, const Message& description, const std::string& input,
                            const std::string& target) {
  if (kind == "neuralNetworkClassifier" && MOKA_TRY(has_text(description, "predictedProbabilitiesName", input))) {
    const std::string label = MOKA_TRY(text_of(description, "predictedFeatureName"));
    for (const Message& output : MOKA_TRY(description.children("output")))
      if (MOKA_TRY(has_text(output, "name", label))) return copy_of(output);
  }
  return array_feature(target, "INT32", {1});
}

}  // namespace

Status set_loss(format::ModelSource& source, const Loss& loss) {
  const Message learner = MOKA_TRY(learner_of(source.specification));
  Message network = MOKA_TRY(network_of(learner));
  const Message description = MOKA_TRY(learner.child("description"));
  const bool classes = loss.kind == "cross-entropy";
  if (!classes && loss.kind != "mse")
    return fail(ErrorCode::invalid_argument, "expected the loss cross-entropy or mse, got '", loss.kind, "'");
  for (const Message& layer : MOKA_TRY(network.children("layers")))
    if (MOKA_TRY(has_text(layer, "name", loss.name)))
      return fail(ErrorCode::invalid_argument, "loss: a layer is called '", loss.name, "' already");
  std::string input = loss.input;
  if (classes)
    input = MOKA_TRY(softmax_of(network, input));
  else if (input.empty())
    input = MOKA_TRY(only_output(description));
  const std::string target = input + "_true";
  if (MOKA_TRY(blobs_of(network)).contains(target) &&
      MOKA_TRY(update_of(source.specification)).count("lossLayers").value() == 0)
    return fail(ErrorCode::invalid_argument, "loss: the network has a value '", target, "' already");
  const Message given = classes ? MOKA_TRY(class_input(MOKA_TRY(kind_of(learner)), description, input, target))
                                : MOKA_TRY(array_feature(target, "DOUBLE", MOKA_TRY(shape_of(source, learner, input))));
  Message update = MOKA_TRY(network.edit("updateParams"));
  MOKA_TRY(update.clear("lossLayers"));
  Message layer = MOKA_TRY(update.edit("lossLayers"));
  MOKA_TRY(set_text(layer, "name", loss.name));
  const Message values =
      MOKA_TRY(layer.edit(classes ? "categoricalCrossEntropyLossLayer" : "meanSquaredErrorLossLayer"));
  MOKA_TRY(set_text(values, "input", input));
  MOKA_TRY(set_text(values, "target", target));
  return set_training_inputs(source.specification, {given});
}

Status check_update(const format::ModelSource& source) {
  const format::ModelFile file =
      MOKA_TRY(format::open_source(source.specification, source.weights, {.any_kind = true}));
  const auto update = import::describe_update(file);
  if (!update || update->fault.empty()) return {};
  return fail(ErrorCode::malformed, "the model cannot be updated: ", update->fault);
}

}  // namespace moka::editing
