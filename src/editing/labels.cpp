// SPDX-License-Identifier: Apache-2.0
#include "editing/labels.h"

#include <algorithm>
#include <set>

#include "editing/network.h"
#include "editing/operations.h"
#include "editing/pipeline.h"
#include "editing/types.h"

namespace moka::editing {
namespace {

size_t count_of(const Labels& labels) {
  return std::visit([](const auto& list) { return list.size(); }, labels);
}
bool are_texts(const Labels& labels) { return labels.index() == 0; }

/// The Value of a list of labels.
Result<Message> label_list(const Labels& labels) {
  Message out = MOKA_TRY(Message::make("MILSpec.Value"));
  Message type = MOKA_TRY(out.edit("type"));
  Message list_type = MOKA_TRY(type.edit("listType"));
  const TensorType element{are_texts(labels) ? "STRING" : "INT64", {}};
  MOKA_TRY(list_type.set("type", MOKA_TRY(make_type(element))));
  Message length = MOKA_TRY(list_type.edit("length"));
  MOKA_TRY(set_integer(MOKA_TRY(length.edit("constant")), "size", static_cast<int64_t>(count_of(labels))));
  Message immediate = MOKA_TRY(out.edit("immediateValue"));
  Message list = MOKA_TRY(immediate.edit("list"));
  if (const auto* texts = std::get_if<std::vector<std::string>>(&labels)) {
    for (const std::string& text : *texts) MOKA_TRY(list.set("values", MOKA_TRY(make_text(text))));
    return out;
  }
  for (int64_t number : std::get<std::vector<int64_t>>(labels)) {
    Message value = MOKA_TRY(list.edit("values"));
    MOKA_TRY(value.set("type", MOKA_TRY(make_type(element))));
    Message held = MOKA_TRY(value.edit("immediateValue"));
    Message tensor = MOKA_TRY(held.edit("tensor"));
    MOKA_TRY(set_integers(MOKA_TRY(tensor.edit("longInts")), "values", {number}));
  }
  return out;
}

/// Replaces the argument `classes` of the operation.
Status set_classes(Message op, const Labels& labels) {
  Message argument = MOKA_TRY(Message::make("MILSpec.Argument"));
  Message binding = MOKA_TRY(argument.edit("arguments"));
  MOKA_TRY(binding.set("value", MOKA_TRY(label_list(labels))));
  for (Message entry : MOKA_TRY(op.children("inputs")))
    if (MOKA_TRY(has_text(entry, "key", "classes"))) return entry.set("value", argument);
  Message entry = MOKA_TRY(op.edit("inputs"));
  MOKA_TRY(set_text(entry, "key", "classes"));
  return entry.set("value", argument);
}

/// The type of a dictionary of probabilities.
Result<Message> dictionary_type(bool texts) {
  Message out = MOKA_TRY(Message::make("MILSpec.ValueType"));
  Message dictionary = MOKA_TRY(out.edit("dictionaryType"));
  MOKA_TRY(dictionary.set("keyType", MOKA_TRY(make_type({texts ? "STRING" : "INT64", {}}))));
  MOKA_TRY(dictionary.set("valueType", MOKA_TRY(make_type({"FLOAT64", {}}))));
  return out;
}

/// Describes `label` and `dictionary` in place of the output `probabilities`.
Status describe_outputs(Message interface, const std::string& probabilities, const std::string& label,
                        const std::string& dictionary, bool texts) {
  std::vector<Message> outputs;
  for (const Message& output : MOKA_TRY(interface.children("output"))) {
    const std::string name = MOKA_TRY(text_of(output, "name"));
    if (name != probabilities) outputs.push_back(output);
    if (name != probabilities && (name == label || name == dictionary))
      return fail(ErrorCode::invalid_argument, "labels: the model has another output '", name, "'");
  }
  for (const std::string& name : {label, dictionary}) {
    Message output = MOKA_TRY(Message::make("FeatureDescription"));
    MOKA_TRY(set_text(output, "name", name));
    Message type = MOKA_TRY(output.edit("type"));
    if (name == label) {
      MOKA_TRY(type.edit(texts ? "stringType" : "int64Type"));
    } else {
      Message keys = MOKA_TRY(type.edit("dictionaryType"));
      MOKA_TRY(keys.edit(texts ? "stringKeyType" : "int64KeyType"));
    }
    outputs.push_back(std::move(output));
  }
  MOKA_TRY(interface.set_all("output", outputs));
  MOKA_TRY(set_text(interface, "predictedFeatureName", label));
  return set_text(interface, "predictedProbabilitiesName", dictionary);
}

Status check_count(const std::vector<int64_t>& shape, const std::string& name, size_t labels) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0) return {};
    if (__builtin_mul_overflow(count, size, &count)) count = -1;
  }
  if (count == static_cast<int64_t>(labels)) return {};
  return fail(ErrorCode::invalid_argument, "labels: expected one for each of the ", count, " elements of '", name,
              "', got ", labels);
}

Result<std::optional<Message>> classify_of(const ProgramFunction& function) {
  for (const Message& op : MOKA_TRY(function.block.children("operations")))
    if (MOKA_TRY(has_text(op, "type", "classify"))) return std::optional(op);
  return std::nullopt;
}

Result<size_t> count_of_classes(const Message& classify, const ProgramFunction& function) {
  Message binding = MOKA_TRY(MOKA_TRY(map_value(classify, "inputs", "classes")).child("arguments"));
  const std::string kind = MOKA_TRY(binding.which("binding"));
  Message type = MOKA_TRY(Message::make("MILSpec.ValueType"));
  if (kind == "value") {
    type = MOKA_TRY(MOKA_TRY(binding.child("value")).child("type"));
  } else {
    const std::string name = MOKA_TRY(text_of(binding, "name"));
    for (const Message& op : MOKA_TRY(function.block.children("operations")))
      for (const Message& output : MOKA_TRY(op.children("outputs")))
        if (MOKA_TRY(has_text(output, "name", name))) type = MOKA_TRY(output.child("type"));
  }
  if (const auto tensor = MOKA_TRY(tensor_type(type)))
    return static_cast<size_t>(tensor->shape.empty() ? 1 : tensor->shape[0]);
  const Message list = MOKA_TRY(child_or_empty(type, "listType"));
  const Message length = MOKA_TRY(child_or_empty(list, "length"));
  return static_cast<size_t>(MOKA_TRY(integer_of(MOKA_TRY(child_or_empty(length, "constant")), "size")));
}

Status wrong_count(size_t expected, size_t got) {
  return fail(ErrorCode::invalid_argument, "labels: expected ", expected, ", as many as the classifier has, got ", got);
}

Status label_program(const Message& model, const Interface& interface, const Labels& labels, std::string from,
                     const std::string& label, const std::string& dictionary) {
  const ProgramFunction function = MOKA_TRY(function_of(model, interface));
  if (const std::optional<Message> classify = MOKA_TRY(classify_of(function))) {
    const size_t count = MOKA_TRY(count_of_classes(*classify, function));
    if (count != count_of(labels)) return wrong_count(count, count_of(labels));
    const std::string old = MOKA_TRY(text_of(interface.message, "predictedFeatureName"));
    MOKA_TRY(set_classes(*classify, labels));
    const std::vector<Message> outputs = MOKA_TRY(classify->children("outputs"));
    const std::string probabilities = MOKA_TRY(text_of(interface.message, "predictedProbabilitiesName"));
    if (outputs.size() != 2)
      return fail(ErrorCode::malformed, "operation 'classify': expected 2 outputs, got ", outputs.size());
    MOKA_TRY(Message(outputs.at(0)).set("type", MOKA_TRY(make_type({are_texts(labels) ? "STRING" : "INT64", {}}))));
    MOKA_TRY(Message(outputs.at(1)).set("type", MOKA_TRY(dictionary_type(are_texts(labels)))));
    std::vector<Message> kept;
    for (const Message& output : MOKA_TRY(interface.message.children("output")))
      if (!MOKA_TRY(has_text(output, "name", old)) && !MOKA_TRY(has_text(output, "name", probabilities)))
        kept.push_back(output);
    MOKA_TRY(Message(interface.message).set_all("output", kept));
    return describe_outputs(interface.message, "", old, probabilities, are_texts(labels));
  }
  std::vector<std::string> returned = MOKA_TRY(texts_of(function.block, "outputs"));
  if (from.empty() && returned.size() == 1) from = returned[0];
  const auto place = std::find(returned.begin(), returned.end(), from);
  if (place == returned.end())
    return fail(ErrorCode::not_found, "labels: expected the name of the output with the probabilities, got '", from,
                "'");
  Operations ops = MOKA_TRY(Operations::of(function));
  const std::map<std::string, TensorType> types = MOKA_TRY(ops.types());
  const auto type = types.find(from);
  if (type == types.end() || !type->second.element.starts_with("FLOAT"))
    return fail(ErrorCode::invalid_argument, "labels: expected numbers in '", from, "'");
  MOKA_TRY(check_count(type->second.shape, from, count_of(labels)));
  if (type->second.element != "FLOAT32") {  // `classify` takes nothing else
    MOKA_TRY(set_element(model, from, "float32", Side::outputs));
    return label_program(model, interface, labels, from, label, dictionary);
  }
  for (const std::string& name : {label, dictionary})
    if (!ops.names.insert(name).second)
      return fail(ErrorCode::invalid_argument, "labels: the program has another value '", name, "'");
  Message op = MOKA_TRY(
      make_operation("classify", {{"probabilities", from}}, label, {are_texts(labels) ? "STRING" : "INT64", {}}));
  MOKA_TRY(set_classes(op, labels));
  Message second = MOKA_TRY(op.edit("outputs"));
  MOKA_TRY(set_text(second, "name", dictionary));
  MOKA_TRY(second.set("type", MOKA_TRY(dictionary_type(are_texts(labels)))));
  ops.list.push_back(op);
  returned.erase(place);
  returned.insert(returned.end(), {label, dictionary});
  MOKA_TRY(ops.write());
  MOKA_TRY(set_texts(function.block, "outputs", returned));
  return describe_outputs(interface.message, from, label, dictionary, are_texts(labels));
}

/// Sets the labels in a message with the oneof ClassLabels.
Status write_labels(Message content, const Labels& labels) {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&labels)) {
    Message list = MOKA_TRY(content.edit("stringClassLabels"));
    return set_texts(list, "vector", *texts);
  }
  Message list = MOKA_TRY(content.edit("int64ClassLabels"));
  return set_integers(list, "vector", std::get<std::vector<int64_t>>(labels));
}

bool has_labels(const Message& content) {
  const auto& oneofs = content.def().oneofs;
  return std::find(oneofs.begin(), oneofs.end(), "ClassLabels") != oneofs.end();
}

Status replace_labels(const Message& content, const Labels& labels) {
  const std::string kind = MOKA_TRY(content.which("ClassLabels"));
  if (!kind.empty()) {
    const size_t count = MOKA_TRY(MOKA_TRY(content.child(kind)).count("vector"));
    if (count != count_of(labels)) return wrong_count(count, count_of(labels));
    if ((kind == "stringClassLabels") != are_texts(labels))
      return fail(ErrorCode::invalid_argument, "labels: expected ", are_texts(labels) ? "integers" : "texts",
                  ", as the classifier has");
  }
  return write_labels(content, labels);
}

Status label_network(Message model, const Interface& interface, const std::string& kind, const Labels& labels,
                     std::string from, const std::string& label, const std::string& dictionary) {
  const std::vector<Message> outputs = MOKA_TRY(interface.message.children("output"));
  if (from.empty() && outputs.size() == 1) from = MOKA_TRY(text_of(outputs[0], "name"));
  const Feature output = MOKA_TRY(find_features(model, from, Side::outputs)).at(0);
  const Message type = MOKA_TRY(child_or_empty(output.message, "type"));
  const Message array = MOKA_TRY(child_or_empty(type, "multiArrayType"));
  if (const std::vector<int64_t> shape = MOKA_TRY(integers_of(array, "shape")); !shape.empty())
    MOKA_TRY(check_count(shape, from, count_of(labels)));
  MOKA_TRY(convert_network(model, kind, "neuralNetworkClassifier"));
  const Message content = MOKA_TRY(model.child("neuralNetworkClassifier"));
  MOKA_TRY(write_labels(content, labels));
  MOKA_TRY(set_text(content, "labelProbabilityLayerName", from));
  return describe_outputs(interface.message, from, label, dictionary, are_texts(labels));
}

/// Describes the label and the probabilities of a pipeline as its last model does.
Status describe_as_stage(const Interface& pipeline, const Message& stage) {
  for (const Feature& feature : MOKA_TRY(features(pipeline))) {
    if (feature.is_input) continue;
    const Result<std::vector<Feature>> same = find_features(stage, feature.name, Side::outputs);
    if (same.ok()) MOKA_TRY(Message(feature.message).set("type", MOKA_TRY(same.value().at(0).message.child("type"))));
  }
  return {};
}

}  // namespace

Status set_labels(Message model, const Labels& labels, const std::string& probabilities, const std::string& label,
                  const std::string& dictionary) {
  if (count_of(labels) == 0) return fail(ErrorCode::invalid_argument, "labels: expected one or more, got none");
  const bool distinct =
      std::visit([](const auto& list) { return std::set(list.begin(), list.end()).size() == list.size(); }, labels);
  if (!distinct) return fail(ErrorCode::invalid_argument, "labels: expected different ones, got one twice");
  const std::string kind = MOKA_TRY(kind_of(model));
  const std::vector<Interface> all = MOKA_TRY(interfaces(model));
  if (kind == "mlProgram") {
    for (const Interface& interface : all)
      MOKA_TRY(label_program(model, interface, labels, probabilities, label, dictionary));
    return {};
  }
  if (kind == "neuralNetwork") return label_network(model, all[0], kind, labels, probabilities, label, dictionary);
  if (is_pipeline(kind)) {
    const std::vector<Stage> stages = MOKA_TRY(stages_of(model));
    if (kind != "pipelineClassifier" || stages.empty())
      return fail(ErrorCode::unsupported, "labels: expected a classifier, got ", name_of_kind(kind));
    MOKA_TRY(set_labels(stages.back().model, labels, probabilities, label, dictionary));
    return describe_as_stage(all.at(0), stages.back().model);
  }
  if (kind.empty() || !has_labels(MOKA_TRY(model.child(kind))))
    return fail(ErrorCode::unsupported, "labels: ", name_of_kind(kind), " has none");
  return replace_labels(MOKA_TRY(model.child(kind)), labels);
}

namespace {

/// A shape that is described only if all of its sizes are known.
std::vector<int64_t> if_known(const std::vector<int64_t>& shape) {
  return std::find(shape.begin(), shape.end(), -1) == shape.end() ? shape : std::vector<int64_t>();
}

/// Describes an array in place of the label and the dictionary.
Status describe_array(Message interface, const Message& array) {
  const std::string label = MOKA_TRY(text_of(interface, "predictedFeatureName"));
  const std::string dictionary = MOKA_TRY(text_of(interface, "predictedProbabilitiesName"));
  std::vector<Message> outputs{array};
  for (const Message& output : MOKA_TRY(interface.children("output")))
    if (const std::string name = MOKA_TRY(text_of(output, "name")); name != label && name != dictionary)
      outputs.push_back(output);
  MOKA_TRY(interface.set_all("output", outputs));
  MOKA_TRY(interface.clear("predictedFeatureName"));
  return interface.clear("predictedProbabilitiesName");
}

Status unlabel_program(const Message& model, const Interface& interface, int64_t version) {
  const ProgramFunction function = MOKA_TRY(function_of(model, interface));
  const std::optional<Message> classify = MOKA_TRY(classify_of(function));
  if (!classify) return fail(ErrorCode::invalid_argument, "expected a classifier, got an ML program without one");
  Message binding = MOKA_TRY(MOKA_TRY(map_value(*classify, "inputs", "probabilities")).child("arguments"));
  const std::string name = MOKA_TRY(text_of(binding, "name"));
  const std::vector<std::string> gone = MOKA_TRY(values_defined(*classify));
  Operations ops = MOKA_TRY(Operations::of(function));
  const std::map<std::string, TensorType> types = MOKA_TRY(ops.types());
  if (!types.contains(name)) return fail(ErrorCode::unsupported, "'", name, "': expected a tensor of known rank");
  const TensorType& type = types.at(name);
  std::vector<std::string> returned{name};
  for (const std::string& other : MOKA_TRY(texts_of(function.block, "outputs")))
    if (std::find(gone.begin(), gone.end(), other) == gone.end() && other != name) returned.push_back(other);
  std::erase_if(ops.list, [&](const Message& op) {
    const auto defined = values_defined(op);
    return defined.ok() && defined.value() == gone;
  });
  MOKA_TRY(set_texts(function.block, "outputs", returned));
  MOKA_TRY(ops.drop_constants());
  MOKA_TRY(ops.write());
  MOKA_TRY(describe_array(interface.message, MOKA_TRY(array_feature(name, type.element, if_known(type.shape)))));
  constexpr int with_float16 = 7;
  if (type.element == "FLOAT16" && version < with_float16) return set_element(model, name, "float32", Side::outputs);
  return {};
}

}  // namespace

Status remove_labels(Message model) {
  const std::string kind = MOKA_TRY(kind_of(model));
  const std::vector<Interface> all = MOKA_TRY(interfaces(model));
  if (kind == "mlProgram") {
    const int64_t version = MOKA_TRY(integer_of(model, "specificationVersion"));
    for (const Interface& interface : all) MOKA_TRY(unlabel_program(model, interface, version));
    return {};
  }
  if (kind != "neuralNetworkClassifier")
    return fail(kind == "neuralNetwork" ? ErrorCode::invalid_argument : ErrorCode::unsupported,
                "expected a classifier that is an ML program or a neural network, got ", name_of_kind(kind));
  Message content = MOKA_TRY(model.child(kind));
  std::string name = MOKA_TRY(text_of(content, "labelProbabilityLayerName"));
  if (name.empty()) {
    const std::vector<Message> layers = MOKA_TRY(content.children("layers"));
    if (layers.empty()) return fail(ErrorCode::malformed, "the network has no layer");
    const std::vector<std::string> computed = MOKA_TRY(texts_of(layers.back(), "output"));
    if (computed.empty()) return fail(ErrorCode::malformed, "the last layer has no output");
    name = computed[0];
  }
  const std::string labels = MOKA_TRY(content.which("ClassLabels"));
  std::vector<int64_t> shape;
  if (!labels.empty()) shape = {static_cast<int64_t>(MOKA_TRY(MOKA_TRY(content.child(labels)).count("vector")))};
  for (const char* field : {"stringClassLabels", "int64ClassLabels", "labelProbabilityLayerName"})
    MOKA_TRY(content.clear(field));
  MOKA_TRY(convert_network(model, kind, "neuralNetwork"));
  return describe_array(all[0].message, MOKA_TRY(array_feature(name, "DOUBLE", if_known(shape))));
}

}  // namespace moka::editing
