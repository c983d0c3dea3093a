// SPDX-License-Identifier: Apache-2.0
#include "editing/rename.h"

#include <algorithm>
#include <set>

#include "editing/network.h"
#include "editing/pipeline.h"
#include "editing/program.h"

namespace moka::editing {
namespace {

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string renamed(const Names& names, const std::string& name) {
  const auto it = names.find(name);
  return it == names.end() ? name : it->second;
}

/// The names that concern a feature on one side of an interface.
Result<Names> names_for(const Interface& interface, const Names& names, Side side) {
  Names out;
  for (const Feature& feature : MOKA_TRY(features(interface)))
    if (const auto it = names.find(feature.name); it != names.end() && is_on(feature, side)) out.insert(*it);
  return out;
}

Status check(const Message& model, const Names& names, Side side) {
  const bool program = MOKA_TRY(kind_of(model)) == "mlProgram";
  for (const auto& [from, to] : names) {
    MOKA_TRY(find_features(model, from, side));
    if (to.empty() || (program && !is_identifier(to)))
      return fail(ErrorCode::invalid_argument, "rename '", from,
                  "': expected a name of letters, digits and underscores that begins with no digit, got '", to, "'");
  }
  for (const Interface& interface : MOKA_TRY(interfaces(model))) {
    std::map<std::string, std::string> inputs, outputs;  // new names to old ones
    for (const Feature& feature : MOKA_TRY(features(interface))) {
      const std::string to = is_on(feature, side) ? renamed(names, feature.name) : feature.name;
      auto& seen = feature.is_input ? inputs : outputs;
      const auto [it, is_new] = seen.emplace(to, feature.name);
      if (!is_new)
        return fail(ErrorCode::invalid_argument, "rename '", names.contains(feature.name) ? feature.name : it->second,
                    "': the model has two features that would be called '", to, "'");
    }
    if (!program) continue;
    for (const auto& [to, from] : outputs)
      if (const auto it = inputs.find(to); it != inputs.end() && it->second != from)
        return fail(ErrorCode::invalid_argument, "rename '", names.contains(from) ? from : it->second,
                    "': the program has an input and an output that would be called '", to, "'");
  }
  return {};
}

/// Error invalid_argument: only one side of a value that is an input and an output is to be renamed.
Status check_sides(const Interface& interface, const Names& names, Side side) {
  if (side == Side::any) return {};
  const Names others = MOKA_TRY(names_for(interface, names, side == Side::inputs ? Side::outputs : Side::inputs));
  if (others.empty()) return {};
  return fail(ErrorCode::invalid_argument, "rename '", others.begin()->first,
              "': it is an input and an output of the model; rename both");
}

Status rename_in_content(const Message& model, const std::string& kind, const Names& names, Side side) {
  const Message content = MOKA_TRY(model.child(kind));
  if (!names_features(content)) return {};
  for (const Interface& interface : MOKA_TRY(interfaces(model))) MOKA_TRY(check_sides(interface, names, side));
  return rename_content(content, names);
}

/// Values and features of one function.
Status rename_in_program(const Message& model, const Names& names, Side side) {
  for (const Interface& interface : MOKA_TRY(interfaces(model))) {
    Names values = MOKA_TRY(names_for(interface, names, side));
    if (values.empty()) continue;
    MOKA_TRY(check_sides(interface, values, side));
    const ProgramFunction function = MOKA_TRY(function_of(model, interface));
    const std::set<std::string> old = MOKA_TRY(names_in(function));
    std::set<std::string> taken = old;
    for (const auto& [from, to] : values) taken.insert(to);
    for (const auto& [from, to] : Names(values))
      if (old.contains(to) && !values.contains(to)) values.emplace(to, unique_name(to, taken));
    MOKA_TRY(editing::rename_values(function, values));
  }
  return {};
}

Status rename_in_pipeline(const Message& model, const Names& names, Side side) {
  const std::vector<Stage> stages = MOKA_TRY(stages_of(model));
  std::set<std::string> old, visible;
  for (const Stage& stage : stages)
    for (const Interface& interface : MOKA_TRY(interfaces(stage.model)))
      for (const Feature& feature : MOKA_TRY(features(interface))) old.insert(feature.name);
  for (const Interface& interface : MOKA_TRY(interfaces(model)))
    for (const Feature& feature : MOKA_TRY(features(interface))) visible.insert(feature.name);
  std::set<std::string> taken = old;
  for (const auto& [from, to] : names) taken.insert(to);
  std::vector<Names> inputs(stages.size()), outputs(stages.size());
  for (const auto& [from, to] : names) {
    for (const StagePlace& place : MOKA_TRY(places_of(model, from, side)))
      (place.is_input ? inputs : outputs)[place.stage].emplace(from, to);
    if (!old.contains(to) || names.contains(to)) continue;
    if (visible.contains(to))
      return fail(ErrorCode::invalid_argument, "rename '", from, "': the pipeline has another feature called '", to,
                  "'");
    const std::string other = unique_name(to, taken);
    for (size_t i = 0; i < stages.size(); ++i) {
      inputs[i].emplace(to, other);
      outputs[i].emplace(to, other);
    }
  }
  for (size_t i = 0; i < stages.size(); ++i)
    for (const Interface& interface : MOKA_TRY(interfaces(stages[i].model))) {
      Names in = MOKA_TRY(names_for(interface, inputs[i], Side::inputs)), both;
      Names out = MOKA_TRY(names_for(interface, outputs[i], Side::outputs));
      for (const auto& [from, to] : in)
        if (out.contains(from)) both.emplace(from, to);
      for (const auto& [from, to] : both) {
        in.erase(from);
        out.erase(from);
      }
      const auto apply = [&](const Names& some, Side on) -> Status {
        return some.empty() ? Status() : rename_features(stages[i].model, some, on);
      };
      MOKA_TRY_IN(apply(both, Side::any), cat("stage '", stages[i].name, "'"));
      MOKA_TRY_IN(apply(in, Side::inputs), cat("stage '", stages[i].name, "'"));
      MOKA_TRY_IN(apply(out, Side::outputs), cat("stage '", stages[i].name, "'"));
    }
  return {};
}

Status rename_described(const Interface& interface, const Names& names, Side side) {
  for (const Feature& feature : MOKA_TRY(features(interface)))
    if (is_on(feature, side)) MOKA_TRY(set_text(feature.message, "name", renamed(names, feature.name)));
  if (side == Side::inputs) return {};
  for (const char* field : {"predictedFeatureName", "predictedProbabilitiesName"})
    if (const std::string name = MOKA_TRY(text_of(interface.message, field)); names.contains(name))
      MOKA_TRY(set_text(interface.message, field, renamed(names, name)));
  return {};
}

}  // namespace

namespace {

Result<std::vector<Message>> training_inputs(const Message& model) {
  const Message description = MOKA_TRY(child_or_empty(model, "description"));
  return description.children("trainingInput");
}

/// Takes the names of features that only training reads from `names`.
Result<Names> take_training_only(const Message& model, Names& names) {
  Names out;
  for (const Message& input : MOKA_TRY(training_inputs(model))) {
    const auto it = names.find(MOKA_TRY(text_of(input, "name")));
    if (it == names.end() || find_features(model, it->first, Side::any).ok()) continue;
    out.insert(*it);
    names.erase(it);
  }
  return out;
}

Status rename_training_inputs(const Message& model, const Names& names) {
  for (const Message& input : MOKA_TRY(training_inputs(model)))
    MOKA_TRY(set_text(input, "name", renamed(names, MOKA_TRY(text_of(input, "name")))));
  return {};
}

/// Renames targets: in the description, in the losses, and in the last model of a pipeline.
Status rename_training_only(const Message& model, const Names& names) {
  for (const auto& [from, to] : names) {
    bool taken = to.empty() || find_features(model, to, Side::any).ok();
    for (const Message& input : MOKA_TRY(training_inputs(model)))
      taken = taken || (MOKA_TRY(has_text(input, "name", to)) && !names.contains(to));
    if (taken)
      return fail(ErrorCode::invalid_argument, "rename '", from, "': the model has two features that would be called '",
                  to, "'");
  }
  MOKA_TRY(rename_training_inputs(model, names));
  const std::string kind = MOKA_TRY(kind_of(model));
  if (is_network(kind)) return rename_content(MOKA_TRY(model.child(kind)), names);
  if (!is_pipeline(kind)) return {};
  for (const Stage& stage : MOKA_TRY(stages_of(model))) {
    Names left = names;
    const Names own = MOKA_TRY(take_training_only(stage.model, left));
    if (!own.empty()) MOKA_TRY(rename_training_only(stage.model, own));
  }
  return {};
}

/// Renames what the training of a model reads as it names the features that the model shares with it.
Status rename_shared_training(const Message& model, const Names& names, Side side) {
  const Message description = MOKA_TRY(child_or_empty(model, "description"));
  const std::string label = MOKA_TRY(text_of(description, "predictedFeatureName"));
  Names wanted;
  for (const auto& name : names)
    if (side == Side::any || (name.first == label) == (side == Side::outputs)) wanted.insert(name);
  return rename_training_inputs(model, wanted);
}

}  // namespace

Status rename_features(Message model, const Names& all, Side side) {
  Names names = all;
  if (side != Side::outputs) {
    const Names training = MOKA_TRY(take_training_only(model, names));
    if (!training.empty()) MOKA_TRY(rename_training_only(model, training));
  }
  if (names.empty()) return {};
  MOKA_TRY(check(model, names, side));
  const std::string kind = MOKA_TRY(kind_of(model));
  if (kind == "customModel" || kind == "linkedModel")
    return fail(ErrorCode::unsupported, name_of_kind(kind),
                ": other code names its features, so they keep their names");
  if (kind == "mlProgram")
    MOKA_TRY(rename_in_program(model, names, side));
  else if (is_pipeline(kind))
    MOKA_TRY(rename_in_pipeline(model, names, side));
  else if (!kind.empty())
    MOKA_TRY(rename_in_content(model, kind, names, side));
  MOKA_TRY(rename_shared_training(model, names, side));
  for (const Interface& interface : MOKA_TRY(interfaces(model))) MOKA_TRY(rename_described(interface, names, side));
  return {};
}

Status rename_operations(Message model, const Names& names) {
  const std::string kind = MOKA_TRY(kind_of(model));
  std::set<std::string> found;
  if (is_network(kind)) {
    const Message network = MOKA_TRY(model.child(kind));
    std::vector<Message> layers = MOKA_TRY(network.children("layers"));
    const Message update = MOKA_TRY(child_or_empty(network, "updateParams"));
    for (const Message& loss : MOKA_TRY(update.children("lossLayers"))) layers.push_back(loss);
    for (const Message& layer : layers)
      if (const auto it = names.find(MOKA_TRY(text_of(layer, "name"))); it != names.end()) {
        found.insert(it->first);
        MOKA_TRY(set_text(layer, "name", it->second));
      }
  } else if (kind == "mlProgram") {
    for (const ProgramFunction& f : MOKA_TRY(program_functions(model)))
      for (const Message& op : MOKA_TRY(f.block.children("operations"))) {
        const auto it = names.find(MOKA_TRY(operation_name(op)));
        if (it == names.end()) continue;
        found.insert(it->first);
        Result<Message> held = map_value(op, "attributes", "name");
        if (held.ok()) {
          const Message text = MOKA_TRY(make_text(it->second));
          MOKA_TRY(held.value().set("type", MOKA_TRY(text.child("type"))));
          MOKA_TRY(held.value().set("immediateValue", MOKA_TRY(text.child("immediateValue"))));
          continue;
        }
        Message changed = op;
        Message entry = MOKA_TRY(changed.edit("attributes"));
        MOKA_TRY(set_text(entry, "key", "name"));
        MOKA_TRY(entry.set("value", MOKA_TRY(make_text(it->second))));
      }
  } else {
    return fail(ErrorCode::unsupported, "rename operations: expected an ML program or a neural network, got ",
                name_of_kind(kind));
  }
  for (const auto& [from, to] : names)
    if (!found.contains(from)) return fail(ErrorCode::not_found, "the model has no operation '", from, "'");
  return {};
}

namespace {

/// Whether two of the values in `taken` get the new name `to`.
bool is_given_twice(const Names& names, const std::set<std::string>& taken, const std::string& to) {
  return std::count_if(names.begin(), names.end(),
                       [&](const auto& name) { return name.second == to && taken.contains(name.first); }) > 1;
}

}  // namespace

Status rename_values(Message model, const Names& names) {
  const std::string kind = MOKA_TRY(kind_of(model));
  for (const auto& [from, to] : names)
    if (find_features(model, from, Side::any).ok())
      return fail(ErrorCode::invalid_argument, "rename value '", from, "': it is a feature; rename the feature");
  if (is_network(kind)) {
    const Message network = MOKA_TRY(model.child(kind));
    const std::set<std::string> taken = MOKA_TRY(blobs_of(network));
    for (const auto& [from, to] : names) {
      if (!taken.contains(from)) return fail(ErrorCode::not_found, "the network has no value '", from, "'");
      if ((taken.contains(to) && !names.contains(to)) || is_given_twice(names, taken, to))
        return fail(ErrorCode::invalid_argument, "rename value '", from, "': the network has another value '", to, "'");
    }
    return rename_content(network, names);
  }
  if (kind != "mlProgram")
    return fail(ErrorCode::unsupported, "rename values: expected an ML program or a neural network, got ",
                name_of_kind(kind));
  std::set<std::string> found;
  for (const ProgramFunction& f : MOKA_TRY(program_functions(model))) {
    const std::set<std::string> taken = MOKA_TRY(names_in(f));
    for (const auto& [from, to] : names) {
      if (!taken.contains(from)) continue;
      found.insert(from);
      if (!is_identifier(to) || (taken.contains(to) && !names.contains(to)) || is_given_twice(names, taken, to))
        return fail(ErrorCode::invalid_argument, "rename value '", from,
                    "': expected a free name of letters, digits and underscores, got '", to, "'");
    }
    MOKA_TRY(editing::rename_values(f, names));
  }
  for (const auto& [from, to] : names)
    if (!found.contains(from)) return fail(ErrorCode::not_found, "the program has no value '", from, "'");
  return {};
}

}  // namespace moka::editing
