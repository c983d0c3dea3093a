// SPDX-License-Identifier: Apache-2.0
#include "editing/inline.h"

#include <algorithm>
#include <map>

#include "editing/operations.h"
#include "editing/pipeline.h"
#include "editing/types.h"
#include "editing/weights.h"

namespace moka::editing {
namespace {

bool fits(const std::vector<int64_t>& given, const std::vector<int64_t>& read) {
  if (given.size() != read.size()) return false;
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i] >= 0 && read[i] >= 0 && given[i] != read[i]) return false;
  return true;
}

class Inliner {
 public:
  explicit Inliner(const Message& pipeline) : pipeline_(pipeline) {}

  /// The Program that computes what the pipeline computes.
  Result<Message> run() {
    const std::vector<Stage> stages = MOKA_TRY(stages_of(pipeline_));
    if (stages.empty()) return fail(ErrorCode::invalid_argument, "the pipeline has no models");
    const Interface interface = MOKA_TRY(interfaces(pipeline_)).at(0);
    const std::vector<Feature> all = MOKA_TRY(features(interface));
    for (const Feature& f : all) {
      names_.insert(f.name);
      if (!f.is_input) outputs_.push_back(f.name);
    }
    for (size_t i = 0; i < stages.size(); ++i) MOKA_TRY_IN(add(stages[i], i), cat("stage '", stages[i].name, "'"));
    for (const Feature& f : all)
      if (f.is_input && !values_.contains(f.name)) MOKA_TRY_IN(add_unread(f), cat("input '", f.name, "'"));
    std::vector<std::string> returned;
    for (const std::string& name : outputs_) {
      const auto it = values_.find(name);
      if (it == values_.end()) return fail(ErrorCode::malformed, "no model computes the output '", name, "'");
      returned.push_back(MOKA_TRY(named(it->second.name, name)));
    }
    Message function = MOKA_TRY(Message::make("MILSpec.Function"));
    MOKA_TRY(set_text(function, "opset", opset_));
    MOKA_TRY(function.set_all("inputs", inputs_));
    Message entry = MOKA_TRY(function.edit("block_specializations"));
    MOKA_TRY(set_text(entry, "key", opset_));
    Message block = MOKA_TRY(entry.edit("value"));
    MOKA_TRY(block.set_all("operations", operations_));
    MOKA_TRY(set_texts(block, "outputs", returned));
    Message program = MOKA_TRY(stages[0].model.child("mlProgram")).copy();
    MOKA_TRY(program.clear("functions"));
    Message main = MOKA_TRY(program.edit("functions"));
    MOKA_TRY(set_text(main, "key", "main"));
    MOKA_TRY(main.set("value", function));
    return program;
  }

 private:
  struct Given {
    std::string name;
    std::optional<TensorType> type;
  };

  Status check(const Stage& stage, const std::vector<Interface>& described) {
    const std::string kind = MOKA_TRY(kind_of(stage.model));
    if (kind != "mlProgram") return fail(ErrorCode::unsupported, "expected an ML program, got ", name_of_kind(kind));
    if (described.size() != 1) return fail(ErrorCode::unsupported, "expected a program with one function");
    for (const Feature& f : MOKA_TRY(features(described[0]))) {
      if (!f.is_input || f.is_state || !values_.contains(f.name) || !computed_.contains(f.name)) continue;
      const Message type = MOKA_TRY(f.message.child("type"));
      if (MOKA_TRY(type.which("Type")) == std::string("imageType"))
        return fail(ErrorCode::unsupported, "'", f.name,
                    "' is an image that another model computes, and its pixels would not be rounded in one program");
    }
    return {};
  }

  /// An input that no model reads stays an input.
  Status add_unread(const Feature& feature) {
    const Message described = MOKA_TRY(feature.message.child("type"));
    const std::string kind = MOKA_TRY(described.which("Type"));
    if (kind != "multiArrayType")
      return fail(ErrorCode::unsupported, "no model reads it, and it is ", name_of_type(kind));
    const Message array = MOKA_TRY(described.child(kind));
    const ElementName* element = element_of_array(MOKA_TRY(text_of(array, "dataType")));
    if (element == nullptr || element->program.empty())
      return fail(ErrorCode::unsupported, "no model reads it, and programs have no inputs of its element type");
    TensorType type{std::string(element->program), MOKA_TRY(integers_of(array, "shape"))};
    if (!MOKA_TRY(array.which("ShapeFlexibility")).empty()) std::fill(type.shape.begin(), type.shape.end(), -1);
    inputs_.push_back(MOKA_TRY(make_named(feature.name, type)));
    values_[feature.name] = {feature.name, type};
    return {};
  }

  Status add(const Stage& stage, size_t index) {
    const std::vector<Interface> described = MOKA_TRY(interfaces(stage.model));
    MOKA_TRY(check(stage, described));
    const Message model = stage.model.copy();
    const ProgramFunction function = MOKA_TRY(function_of(model, MOKA_TRY(interfaces(model)).at(0)));
    opset_ = std::max(opset_, function.opset);
    Operations ops = MOKA_TRY(Operations::of(function));
    const std::map<std::string, TensorType> types = MOKA_TRY(ops.types());
    std::map<std::string, Message> declared;
    for (const Message& input : MOKA_TRY(function.function.children("inputs")))
      declared.emplace(MOKA_TRY(text_of(input, "name")), input);
    Names names;
    std::map<std::string, TensorType> casts;
    for (const auto& [name, input] : declared) {
      const auto given = values_.find(name);
      if (given == values_.end()) {  // an input or a state of the pipeline
        const auto type = types.find(name);
        names_.insert(name);
        inputs_.push_back(input);
        values_[name] = {name, type == types.end() ? std::nullopt : std::optional(type->second)};
        continue;
      }
      const std::optional<TensorType>& type = given->second.type;
      if (!type || !types.contains(name)) return fail(ErrorCode::unsupported, "'", name, "': expected a tensor");
      if (!fits(type->shape, types.at(name).shape))
        return fail(ErrorCode::unsupported, "'", name, "': another shape is computed than the program reads");
      names[name] = given->second.name;
      if (type->element != types.at(name).element) casts.emplace(name, types.at(name));
    }
    const std::vector<std::string> own(ops.names.begin(), ops.names.end());
    for (const std::string& name : own)
      if (!declared.contains(name)) names[name] = unique_name(name, names_);
    const std::vector<std::string> before = MOKA_TRY(texts_of(function.block, "outputs"));
    MOKA_TRY(rename_values(function, names));
    ops = MOKA_TRY(Operations::of(function));
    ops.names = names_;
    size_t at = 0;
    for (const auto& [name, type] : casts) {
      const std::string cast = cat(names.at(name), "_", index);
      const std::string made = MOKA_TRY(insert_cast(ops, at, names.at(name), type, cast));
      MOKA_TRY(ops.replace_uses(names.at(name), made, at, true));
    }
    names_ = ops.names;
    operations_.insert(operations_.end(), ops.list.begin(), ops.list.end());
    return note_outputs(described[0], function, before, MOKA_TRY(ops.types()));
  }

  /// The results of a model under the names of its features.
  Status note_outputs(const Interface& described, const ProgramFunction& function,
                      const std::vector<std::string>& before, const std::map<std::string, TensorType>& types) {
    const std::vector<std::string> returned = MOKA_TRY(texts_of(function.block, "outputs"));
    const std::vector<Message> outputs = MOKA_TRY(described.message.children("output"));
    if (returned.size() != outputs.size())
      return fail(ErrorCode::malformed, "expected ", outputs.size(), " outputs as described, got ", returned.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string feature = MOKA_TRY(text_of(outputs[i], "name"));
      const auto place = std::find(before.begin(), before.end(), feature);
      const std::string& value = returned[place == before.end() ? i : static_cast<size_t>(place - before.begin())];
      const auto type = types.find(value);
      values_[feature] = {value, type == types.end() ? std::nullopt : std::optional(type->second)};
      computed_.insert(feature);
    }
    return {};
  }

  /// Gives a value the name of an output. Returns the name.
  Result<std::string> named(const std::string& value, const std::string& output) {
    if (value == output) return output;
    const auto is_input = [&](const std::string& name) {
      return std::any_of(inputs_.begin(), inputs_.end(), [&](const Message& input) {
        const auto same = has_text(input, "name", name);
        return same.ok() && same.value();
      });
    };
    if (is_input(output))
      return fail(ErrorCode::invalid_argument, "'", output,
                  "': the pipeline has an input and an output of this name; rename one of them");
    Message block = MOKA_TRY(Message::make("MILSpec.Block"));
    MOKA_TRY(block.set_all("operations", operations_));
    const ProgramFunction function{"main", opset_, MOKA_TRY(Message::make("MILSpec.Function")), block};
    if (is_input(value) || std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end()) {
      const Operations ops = MOKA_TRY(Operations::of(function));
      const std::map<std::string, TensorType> types = MOKA_TRY(ops.types());
      const auto type = types.find(value);
      if (type == types.end())
        return fail(ErrorCode::unsupported, "output '", output, "': the pipeline returns '", value, "' twice");
      operations_.push_back(MOKA_TRY(make_operation("identity", {{"x", value}}, output, type->second)));
      return output;
    }
    MOKA_TRY(editing::rename_values(function, {{value, output}}));
    operations_ = MOKA_TRY(block.children("operations"));
    for (auto& [feature, given] : values_)
      if (given.name == value) given.name = output;
    return output;
  }

  Message pipeline_;
  std::set<std::string> names_;  ///< of values and of the pipeline's features
  std::set<std::string> computed_;
  std::vector<std::string> outputs_;
  std::map<std::string, Given> values_;  ///< by feature
  std::vector<Message> inputs_, operations_;
  std::string opset_;
};

}  // namespace

Status inline_pipeline(format::ModelSource& source) {
  const std::string kind = MOKA_TRY(kind_of(source.specification));
  if (!is_pipeline(kind)) return fail(ErrorCode::invalid_argument, "expected a pipeline, got ", name_of_kind(kind));
  const Message program = MOKA_TRY(Inliner(source.specification).run());
  Message model = source.specification;
  MOKA_TRY(model.set("mlProgram", program));
  return merge_weights(source);
}

}  // namespace moka::editing
