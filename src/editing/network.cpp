// SPDX-License-Identifier: Apache-2.0
#include "editing/network.h"

#include "editing/program.h"

namespace moka::editing {
namespace {

using format::FieldDef;
using format::FieldKind;
using format::MessageDef;

/// Whether a text field of a message names features.
bool is_feature_name(const MessageDef& def, const FieldDef& field) {
  if (field.kind != FieldKind::text) return false;
  const std::string_view name = field.name;
  if (def.name == "NeuralNetworkLayer" && (name == "input" || name == "output")) return true;
  if (def.name.ends_with("LossLayer") && (name == "input" || name == "target")) return true;
  return name.ends_with("eatureName") || name == "inputColumn" || name == "labelProbabilityLayerName" ||
         name == "conditionVar";
}

/// The types of messages that name features or contain one that does, so that trees and vectors stay encoded.
const std::set<const MessageDef*>& naming() {
  static const std::set<const MessageDef*> found = [] {
    std::set<const MessageDef*> out;
    for (bool more = true; more;) {
      more = false;
      for (const std::string& name : format::message_names()) {
        const MessageDef* def = format::find_message(name);
        if (out.contains(def)) continue;
        for (const auto& [number, field] : def->fields) {
          if (!is_feature_name(*def, field) && (field.message == nullptr || !out.contains(field.message))) continue;
          out.insert(def);
          more = true;
          break;
        }
      }
    }
    return out;
  }();
  return found;
}

Status rename_fields(Message message, const Names& names) {
  for (const auto& [number, field] : message.def().fields) {
    if (is_feature_name(message.def(), field)) {
      std::vector<std::string> texts = MOKA_TRY(texts_of(message, field.name));
      bool changed = false;
      for (std::string& text : texts)
        if (const auto it = names.find(text); it != names.end()) {
          text = it->second;
          changed = true;
        }
      if (changed && field.repeated) MOKA_TRY(set_texts(message, field.name, texts));
      if (changed && !field.repeated) MOKA_TRY(set_text(message, field.name, texts.back()));
    } else if (field.kind == FieldKind::message && naming().contains(field.message)) {
      for (const Message& child : MOKA_TRY(message.children(field.name))) MOKA_TRY(rename_fields(child, names));
    }
  }
  return {};
}

Status add_blobs(const Message& message, std::set<std::string>& out) {
  for (const auto& [number, field] : message.def().fields) {
    if (is_feature_name(message.def(), field)) {
      for (std::string& text : MOKA_TRY(texts_of(message, field.name))) out.insert(std::move(text));
    } else if (field.kind == FieldKind::message && naming().contains(field.message)) {
      for (const Message& child : MOKA_TRY(message.children(field.name))) MOKA_TRY(add_blobs(child, out));
    }
  }
  return {};
}

}  // namespace

Result<std::set<std::string>> blobs_of(const Message& network) {
  std::set<std::string> out;
  MOKA_TRY(add_blobs(network, out));
  return out;
}

Result<std::set<std::string>> reads_of(const Message& layer) {
  const std::vector<std::string> inputs = MOKA_TRY(texts_of(layer, "input"));
  std::set<std::string> out(inputs.begin(), inputs.end());
  for (const char* kind : {"branch", "loop"})
    if (MOKA_TRY(layer.count(kind)) > 0) {
      out.merge(MOKA_TRY(blobs_of(MOKA_TRY(layer.child(kind)))));
    }
  return out;
}

bool names_features(const Message& content) { return naming().contains(&content.def()); }

Status rename_content(Message content, const Names& names) {
  if (!names_features(content)) return {};
  Names all = names;
  const std::set<std::string> old = MOKA_TRY(blobs_of(content));
  std::set<std::string> taken = old;
  for (const auto& [from, to] : names) taken.insert(to);
  for (const auto& [from, to] : names)
    if (old.contains(to) && !names.contains(to)) all.emplace(to, unique_name(to, taken));
  return rename_fields(content, all);
}

Status convert_network(Message model, const std::string& from, const std::string& to) {
  const Bytes bytes = MOKA_TRY(MOKA_TRY(model.child(from)).serialize()).joined();
  const std::string type = model.def().find(to)->message->name;
  return model.set(to, MOKA_TRY(Message::parse(type, bytes)));
}

Status add_scale_layer(Message network, const std::string& name, bool is_input, const std::vector<double>& scale,
                       const std::vector<double>& bias) {
  std::set<std::string> taken = MOKA_TRY(blobs_of(network));
  const std::string inner = unique_name(cat(name, is_input ? "_scaled" : "_before_scale"), taken);
  std::vector<Message> layers = MOKA_TRY(network.children("layers"));
  for (const Message& layer : layers) MOKA_TRY(rename_fields(layer, {{name, inner}}));
  Message added = MOKA_TRY(Message::make("NeuralNetworkLayer"));
  MOKA_TRY(set_text(added, "name", inner));
  MOKA_TRY(set_texts(added, "input", {is_input ? name : inner}));
  MOKA_TRY(set_texts(added, "output", {is_input ? inner : name}));
  Message parameters = MOKA_TRY(added.edit("scale"));
  const auto set = [&](const char* shape, const char* field, const std::vector<double>& numbers) -> Status {
    MOKA_TRY(set_integers(parameters, shape, {static_cast<int64_t>(numbers.size())}));
    Message weights = MOKA_TRY(parameters.edit(field));
    const std::vector<format::Scalar> values(numbers.begin(), numbers.end());
    return weights.set_all("floatValue", values);
  };
  MOKA_TRY(set("shapeScale", "scale", scale));
  MOKA_TRY(parameters.set("hasBias", format::Scalar(true)));
  MOKA_TRY(set("shapeBias", "bias", bias));
  layers.insert(is_input ? layers.begin() : layers.end(), added);
  return network.set_all("layers", layers);
}

}  // namespace moka::editing
