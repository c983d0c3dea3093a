// SPDX-License-Identifier: Apache-2.0
#include "editing/cut.h"

#include <algorithm>
#include <map>
#include <set>

#include "editing/cut_network.h"
#include "editing/operations.h"
#include "editing/types.h"
#include "editing/weights.h"

namespace moka::editing {
namespace {

constexpr int kHalfVersion = 7;  // features are float16 from this version of the specification on

/// The element type of a feature for a value.
Result<std::string> feature_element(const TensorType& type, const std::string& name, int64_t version) {
  const ElementName* element = element_of_program(type.element);
  if (element != nullptr && element->name == "float16" && version < kHalfVersion) return std::string("FLOAT32");
  if (element != nullptr && version >= element->version) return type.element;
  if (type.element == "FLOAT16") return std::string("FLOAT32");
  if (type.element == "BOOL" || type.element.starts_with("INT") || type.element.starts_with("UINT"))
    return std::string("INT32");
  return fail(ErrorCode::unsupported, "value '", name, "': no feature has elements of type ", type.element);
}

/// A FeatureDescription.
Result<Message> make_array_feature(const std::string& name, const TensorType& type, bool is_input) {
  Message out = MOKA_TRY(Message::make("FeatureDescription"));
  MOKA_TRY(set_text(out, "name", name));
  Message kind = MOKA_TRY(out.edit("type"));
  Message array = MOKA_TRY(kind.edit("multiArrayType"));
  MOKA_TRY(set_text(array, "dataType", std::string(element_of_program(type.element)->array)));
  std::vector<int64_t> shape = type.shape;
  const bool known = std::find(shape.begin(), shape.end(), -1) == shape.end();
  if (!known && !is_input) return out;
  for (int64_t& size : shape) size = std::max<int64_t>(size, 1);
  if (shape.empty()) shape = {1};
  MOKA_TRY(set_integers(array, "shape", shape));
  if (known) return out;
  Message range = MOKA_TRY(array.edit("shapeRange"));
  for (int64_t size : type.shape) {
    const Message one = MOKA_TRY(range.edit("sizeRanges"));
    MOKA_TRY(set_integer(one, "lowerBound", std::max<int64_t>(size, 1)));
    MOKA_TRY(set_integer(one, "upperBound", size));
  }
  return out;
}

class ProgramCut {
 public:
  ProgramCut(Message model, Interface interface, ProgramFunction function, Operations ops)
      : model_(std::move(model)),
        interface_(std::move(interface)),
        function_(std::move(function)),
        ops_(std::move(ops)) {}

  Status run(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
             const std::optional<OperationRange>& part) {
    version_ = MOKA_TRY(integer_of(model_, "specificationVersion"));
    types_ = MOKA_TRY(ops_.types());
    MOKA_TRY(index());
    const std::vector<std::string> old_outputs = MOKA_TRY(texts_of(function_.block, "outputs"));
    for (const std::string& name : inputs)
      for (std::string& value : MOKA_TRY(resolve(name)))
        if (!declared_.contains(value))
          provided_.push_back(std::move(value));
        else
          kept_inputs_.insert(std::move(value));
    for (const std::string& name : outputs)
      for (std::string& value : MOKA_TRY(resolve(name))) {
        if (declared_.contains(value) || has(provided_, value))
          return fail(ErrorCode::invalid_argument, "output '", name, "': it is an input of the model that is cut out");
        if (MOKA_TRY(text_of(ops_.list[producer_.at(value)], "type")) == "const")
          return fail(ErrorCode::invalid_argument, "output '", name, "': it is a constant");
        if (!has(returned_, value)) returned_.push_back(std::move(value));
      }
    if (outputs.empty()) returned_ = old_outputs;
    MOKA_TRY(drop_operations(part ? *part : effects(old_outputs)));
    MOKA_TRY(set_texts(function_.block, "outputs", returned_));
    MOKA_TRY(write_inputs(!inputs.empty() && !part));
    MOKA_TRY(write_outputs());
    return ops_.write();
  }

 private:
  static bool has(const std::vector<std::string>& list, const std::string& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  Status index() {
    for (const Message& input : MOKA_TRY(function_.function.children("inputs")))
      declared_.insert(MOKA_TRY(text_of(input, "name")));
    for (size_t i = 0; i < ops_.list.size(); ++i) {
      const std::vector<std::string> defined = MOKA_TRY(values_defined(ops_.list[i]));
      for (const std::string& name : defined) producer_.emplace(name, i);
      operations_.emplace(MOKA_TRY(operation_name(ops_.list[i])), defined);
    }
    return {};
  }

  Result<std::vector<std::string>> resolve(const std::string& name) {
    if (declared_.contains(name) || producer_.contains(name)) return std::vector<std::string>{name};
    if (const auto it = operations_.find(name); it != operations_.end()) return it->second;
    if (ops_.names.contains(name))
      return fail(ErrorCode::invalid_argument, "value '", name,
                  "' is inside a block; a model is cut outside of blocks");
    return fail(ErrorCode::not_found, "the program has no value or operation '", name, "'");
  }

  /// The range in which operations with effects are kept, though nothing reads their results.
  OperationRange effects(const std::vector<std::string>& old_outputs) const {
    OperationRange out{provided_.empty() ? 0 : ops_.list.size(), 0};
    for (const std::string& value : provided_) out.begin = std::min(out.begin, producer_.at(value));
    bool ends_early = false;
    for (const std::string& value : returned_) {
      ends_early |= !has(old_outputs, value);
      if (const auto it = producer_.find(value); it != producer_.end()) out.end = std::max(out.end, it->second + 1);
    }
    if (!ends_early) out.end = ops_.list.size();
    return out;
  }

  Status drop_operations(OperationRange effects) {
    std::set<std::string> needed(returned_.begin(), returned_.end());
    std::vector<Message> kept;
    for (size_t i = ops_.list.size(); i-- > 0;) {
      const Message& op = ops_.list[i];
      bool wanted = i >= effects.begin && i < effects.end && MOKA_TRY(has_effect(op)), given = false;
      const std::vector<std::string> defined = MOKA_TRY(values_defined(op));
      for (const std::string& name : defined) {
        given |= has(provided_, name);
        wanted |= needed.contains(name) && !has(provided_, name);
      }
      if (!wanted) continue;
      if (given)
        return fail(ErrorCode::invalid_argument, "operation '", MOKA_TRY(operation_name(op)),
                    "': some of its outputs become inputs, but others are needed, too");
      for (std::string& name : MOKA_TRY(values_read(op))) needed.insert(std::move(name));
      kept.push_back(op);
    }
    std::reverse(kept.begin(), kept.end());
    ops_.list = std::move(kept);
    needed_ = std::move(needed);
    return {};
  }

  Status write_inputs(bool cut_inputs) {
    for (const std::string& name : provided_)
      if (!needed_.contains(name))
        return fail(ErrorCode::invalid_argument, "input '", name, "': nothing between it and the outputs reads it");
    std::vector<Message> values, described, states;
    std::map<std::string, Feature> old;
    for (const Feature& f : MOKA_TRY(features(interface_)))
      if (f.is_input) old.emplace(f.name, f);
    for (const Message& input : MOKA_TRY(function_.function.children("inputs"))) {
      const std::string name = MOKA_TRY(text_of(input, "name"));
      if (!needed_.contains(name)) {
        if (kept_inputs_.contains(name))
          return fail(ErrorCode::invalid_argument, "input '", name, "': nothing between it and the outputs reads it");
        continue;
      }
      if (!old.contains(name)) return fail(ErrorCode::malformed, "the program's input '", name, "' is not described");
      if (cut_inputs && !kept_inputs_.contains(name) && !old.at(name).is_state)
        return fail(ErrorCode::invalid_argument, "the outputs also depend on the input '", name,
                    "'; list it among the inputs, or further values that replace it");
      values.push_back(input);
      (old.at(name).is_state ? states : described).push_back(old.at(name).message);
    }
    size_t at = 0;
    for (const std::string& name : provided_) {
      const auto it = types_.find(name);
      if (it == types_.end())
        return fail(ErrorCode::unsupported, "value '", name, "': expected a tensor of known rank");
      TensorType outside = it->second;
      outside.element = MOKA_TRY(feature_element(it->second, name, version_));
      if (outside.shape.empty()) outside.shape = {1};
      values.push_back(MOKA_TRY(make_named(name, outside)));
      described.push_back(MOKA_TRY(make_array_feature(name, outside, true)));
      MOKA_TRY(convert_input(at, name, outside, it->second));
    }
    if (described.empty()) return fail(ErrorCode::invalid_argument, "the model that is cut out would have no input");
    MOKA_TRY(function_.function.set_all("inputs", values));
    MOKA_TRY(interface_.message.set_all("input", described));
    return interface_.message.set_all("state", states);
  }

  /// Inserts operations that convert the feature's value to the value that the program reads.
  Status convert_input(size_t& at, const std::string& name, const TensorType& outside, const TensorType& inside) {
    std::string value = name;
    const size_t first = at;
    TensorType type = outside;
    if (outside.shape != inside.shape) {
      type.shape = inside.shape;
      const std::string axes =
          MOKA_TRY(ops_.insert_constant(at, MOKA_TRY(make_value({"INT32", {1}}, {0})), cat(name, "_axes")));
      value = MOKA_TRY(ops_.insert(at, "squeeze", {{"x", value}, {"axes", axes}}, cat(name, "_squeezed"), type));
    }
    if (outside.element != inside.element) value = MOKA_TRY(insert_cast(ops_, at, value, inside, cat(name, "_cast")));
    if (at != first) MOKA_TRY(ops_.replace_uses(name, value, at));
    return {};
  }

  Status write_outputs() {
    std::map<std::string, Message> old;
    for (const Feature& f : MOKA_TRY(features(interface_)))
      if (!f.is_input) old.emplace(f.name, f.message);
    std::vector<Message> described;
    for (const std::string& name : returned_) {
      if (const auto it = old.find(name); it != old.end()) {
        described.push_back(it->second);
        continue;
      }
      const auto it = types_.find(name);
      if (it == types_.end())
        return fail(ErrorCode::unsupported, "value '", name, "': expected a tensor of known rank");
      TensorType outside = it->second;
      outside.element = MOKA_TRY(feature_element(it->second, name, version_));
      if (outside.shape.empty()) outside.shape = {1};
      described.push_back(MOKA_TRY(make_array_feature(name, outside, false)));
      if (outside != it->second) MOKA_TRY(convert_output(name, outside, it->second));
    }
    const auto gone = [&](const char* field) -> Status {
      const std::string name = MOKA_TRY(text_of(interface_.message, field));
      return name.empty() || has(returned_, name) ? Status() : interface_.message.clear(field);
    };
    MOKA_TRY(gone("predictedFeatureName"));
    MOKA_TRY(gone("predictedProbabilitiesName"));
    return interface_.message.set_all("output", described);
  }

  /// Casts and expands the computed value, of type `inside`, to the feature's type, `outside`.
  Status convert_output(const std::string& name, const TensorType& outside, const TensorType& inside) {
    for (size_t i = 0; i < ops_.list.size(); ++i)
      for (const Message& output : MOKA_TRY(ops_.list[i].children("outputs"))) {
        if (!MOKA_TRY(has_text(output, "name", name))) continue;
        std::string value = unique_name(cat(name, "_before_cast"), ops_.names);
        MOKA_TRY(set_text(output, "name", value));
        MOKA_TRY(ops_.replace_uses(name, value, i + 1));
        size_t at = ops_.list.size();
        const bool expands = outside.shape != inside.shape;
        if (outside.element != inside.element) {
          if (!expands) ops_.names.erase(name);
          const TensorType cast{outside.element, inside.shape};
          value = MOKA_TRY(insert_cast(ops_, at, value, cast, expands ? cat(name, "_cast") : name));
        }
        if (!expands) return {};
        const std::string axes =
            MOKA_TRY(ops_.insert_constant(at, MOKA_TRY(make_value({"INT32", {1}}, {0})), cat(name, "_axes")));
        ops_.names.erase(name);
        MOKA_TRY(ops_.insert(at, "expand_dims", {{"x", value}, {"axes", axes}}, name, outside));
        return {};
      }
    return {};
  }

  Message model_;
  Interface interface_;
  ProgramFunction function_;
  Operations ops_;
  int64_t version_ = 0;
  std::map<std::string, TensorType> types_;
  std::set<std::string> declared_;          ///< inputs of the function
  std::map<std::string, size_t> producer_;  ///< of values outside of blocks
  std::map<std::string, std::vector<std::string>> operations_;
  std::vector<std::string> provided_, returned_;
  std::set<std::string> kept_inputs_, needed_;
};

}  // namespace

namespace {

Status cut_program(format::ModelSource& source, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs, const std::optional<OperationRange>& part) {
  const std::string kind = MOKA_TRY(kind_of(source.specification));
  if (kind != "mlProgram")
    return fail(ErrorCode::unsupported, "cut: expected an ML program or a neural network, got ", name_of_kind(kind));
  const std::vector<Interface> all = MOKA_TRY(interfaces(source.specification));
  const size_t functions = MOKA_TRY(program_functions(source.specification)).size();
  if (all.size() != 1 || functions != 1)
    return fail(ErrorCode::invalid_argument, "cut: expected a program with one function, got ", functions,
                "; extract one first");
  const ProgramFunction function = MOKA_TRY(function_of(source.specification, all[0]));
  Operations ops = MOKA_TRY(Operations::of(function));
  MOKA_TRY(ProgramCut(source.specification, all[0], function, std::move(ops)).run(inputs, outputs, part));
  return drop_unused_weights(source);
}

}  // namespace

Status cut(format::ModelSource& source, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs) {
  if (is_network(MOKA_TRY(kind_of(source.specification)))) return cut_network(source, inputs, outputs);
  return cut_program(source, inputs, outputs, std::nullopt);
}

Status cut_part(format::ModelSource& source, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, OperationRange part) {
  return cut_program(source, inputs, outputs, part);
}

}  // namespace moka::editing
