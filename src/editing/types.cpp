// SPDX-License-Identifier: Apache-2.0
#include "editing/types.h"

#include <algorithm>

#include "editing/pipeline.h"

namespace moka::editing {
namespace {

constexpr ElementName kElements[] = {{"float16", "FLOAT16", "FLOAT16", "fp16", 7},
                                     {"float32", "FLOAT32", "FLOAT32", "fp32", 1},
                                     {"float64", "DOUBLE", "", "fp64", 1},
                                     {"int32", "INT32", "INT32", "int32", 1},
                                     {"int8", "INT8", "INT8", "int8", 10}};

/// The operation `cast` of `value`, which is an argument, to the element type.
Result<bool> is_cast(const Message& op, const std::string& value, std::string_view element) {
  if (!MOKA_TRY(has_text(op, "type", "cast"))) return false;
  bool reads = false;
  for (const std::string& name : MOKA_TRY(values_read(op))) reads |= name == value;
  if (!reads) return false;
  const auto type = MOKA_TRY(tensor_type(MOKA_TRY(MOKA_TRY(op.child("outputs")).child("type"))));
  return type && type->element == element;
}

Status change_input(const ProgramFunction& function, const std::string& name, const ElementName& element) {
  for (Message input : MOKA_TRY(function.function.children("inputs"))) {
    if (!MOKA_TRY(has_text(input, "name", name))) continue;
    const auto type = MOKA_TRY(tensor_type(MOKA_TRY(input.child("type"))));
    if (!type) return fail(ErrorCode::malformed, "input '", name, "': expected a tensor type of known rank");
    if (type->element == element.program) return {};
    TensorType changed = *type;
    changed.element = element.program;
    MOKA_TRY(input.set("type", MOKA_TRY(make_type(changed))));
    Operations ops = MOKA_TRY(Operations::of(function));
    // A cast of the input to this very type is not needed anymore.
    std::vector<std::string> needless;
    const std::vector<std::string> returned = MOKA_TRY(texts_of(function.block, "outputs"));
    for (size_t i = 0; i < ops.list.size();) {
      const bool same = MOKA_TRY(is_cast(ops.list[i], name, element.program));
      const std::string output = same ? MOKA_TRY(values_defined(ops.list[i])).at(0) : "";
      if (!same || std::find(returned.begin(), returned.end(), output) != returned.end()) {
        ++i;
        continue;
      }
      needless.push_back(output);
      ops.list.erase(ops.list.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (MOKA_TRY(ops.is_read(name))) {
      size_t at = 0;
      const ElementName* old = element_of_program(type->element);
      if (old == nullptr)
        return fail(ErrorCode::unsupported, "input '", name, "': elements of type ", type->element, " are not changed");
      const std::string cast = MOKA_TRY(insert_cast(ops, at, name, *type, cat(name, "_to_", old->mil)));
      MOKA_TRY(ops.replace_uses(name, cast, at, true));
    }
    for (const std::string& value : needless) MOKA_TRY(ops.replace_uses(value, name, 0));
    MOKA_TRY(ops.drop_constants());
    return ops.write();
  }
  return fail(ErrorCode::malformed, "input '", name, "' is described, but the program does not have it");
}

/// The value that a cast reads, if it has this type and no other name matters.
Result<std::optional<std::string>> source_of_cast(const Operations& ops, const Message& op, const TensorType& wanted) {
  if (!MOKA_TRY(has_text(op, "type", "cast"))) return std::nullopt;
  const Message x = MOKA_TRY(MOKA_TRY(map_value(op, "inputs", "x")).child("arguments"));
  const std::string source = MOKA_TRY(text_of(x, "name"));
  if (MOKA_TRY(ops.is_returned(source))) return std::nullopt;
  for (const Message& other : ops.list)
    for (const Message& output : MOKA_TRY(other.children("outputs")))
      if (MOKA_TRY(has_text(output, "name", source)) &&
          MOKA_TRY(tensor_type(MOKA_TRY(output.child("type")))) == std::optional(wanted))
        return source;
  return std::nullopt;
}

Status change_output(const ProgramFunction& function, const std::string& name, const ElementName& element) {
  Operations ops = MOKA_TRY(Operations::of(function));
  const Operations::Definition definition = MOKA_TRY(ops.definition_of_output(name));
  const size_t at = definition.operation;
  if (definition.type.element == element.program) return {};
  TensorType changed = definition.type;
  changed.element = element.program;
  const std::optional<std::string> source = MOKA_TRY(source_of_cast(ops, ops.list[at], changed));
  const std::string before = unique_name(cat(name, "_before_cast"), ops.names);
  MOKA_TRY(set_text(definition.output, "name", before));
  MOKA_TRY(ops.replace_uses(name, before, at + 1));
  if (source) {
    if (!MOKA_TRY(ops.is_read(before))) ops.list.erase(ops.list.begin() + static_cast<std::ptrdiff_t>(at));
    MOKA_TRY(ops.drop_constants());
    MOKA_TRY(ops.write());
    return rename_values(function, {{*source, name}});
  }
  size_t end = ops.list.size();
  ops.names.erase(name);
  MOKA_TRY(insert_cast(ops, end, before, changed, name));
  return ops.write();
}

/// Where a feature is an array: its ArrayFeatureType.
Result<Message> array_type(const Feature& feature) {
  const Message type = MOKA_TRY(feature.message.child("type"));
  const std::string kind = MOKA_TRY(type.which("Type"));
  if (kind == "multiArrayType") return type.child(kind);
  return fail(ErrorCode::invalid_argument, "'", feature.name, "': expected an array, got ", name_of_type(kind));
}

Status change_default(Message array, const ElementName& element) {
  const std::string field = MOKA_TRY(array.which("defaultOptionalValue"));
  if (field.empty()) return {};
  const format::Scalar old = MOKA_TRY(array.values(field)).at(0);
  const double value = std::holds_alternative<double>(old)    ? std::get<double>(old)
                       : std::holds_alternative<int64_t>(old) ? static_cast<double>(std::get<int64_t>(old))
                                                              : 0;
  if (element.name == "int32" || element.name == "int8") {
    const double most = element.name == "int8" ? 127 : 2147483647;
    if (!(value >= -most - 1 && value <= most))
      return fail(ErrorCode::invalid_argument, "the default value ", value, " is no ", element.name);
    return set_integer(array, "intDefaultValue", static_cast<int64_t>(value));
  }
  return array.set(element.name == "float64" ? "doubleDefaultValue" : "floatDefaultValue", format::Scalar(value));
}

}  // namespace

Result<const ElementName*> element_named(std::string_view name) {
  std::string known;
  for (const ElementName& e : kElements) {
    if (e.name == name) return &e;
    known += cat(known.empty() ? "" : ", ", e.name);
  }
  return fail(ErrorCode::invalid_argument, "element type: expected one of ", known, ", got '", name, "'");
}

namespace {

/// MIL's name of an element type of programs: "FLOAT32" as "fp32".
Result<std::string> mil_name(std::string_view program) {
  if (const ElementName* element = element_of_program(program)) return std::string(element->mil);
  if (program == "BOOL") return std::string("bool");
  std::string out(program);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  if (out.starts_with("int") || out.starts_with("uint")) return out;
  return fail(ErrorCode::unsupported, "element type ", program, ": no cast makes it");
}

}  // namespace

const ElementName* element_of_array(std::string_view array) {
  const auto* it = std::find_if(std::begin(kElements), std::end(kElements), [&](auto& e) { return e.array == array; });
  return it == std::end(kElements) ? nullptr : it;
}

const ElementName* element_of_program(std::string_view program) {
  const auto* it =
      std::find_if(std::begin(kElements), std::end(kElements), [&](auto& e) { return e.program == program; });
  return it == std::end(kElements) || program.empty() ? nullptr : it;
}

Result<std::string> insert_cast(Operations& ops, size_t& at, const std::string& value, const TensorType& type,
                                const std::string& name) {
  const Message text = MOKA_TRY(make_text(MOKA_TRY(mil_name(type.element))));
  const std::string dtype = MOKA_TRY(ops.insert_constant(at, text, cat(name, "_dtype")));
  return ops.insert(at, "cast", {{"x", value}, {"dtype", dtype}}, name, type);
}

Status set_element(Message model, std::string_view name, std::string_view element_name, Side side) {
  const ElementName& element = *MOKA_TRY(element_named(element_name));
  const std::string kind = MOKA_TRY(kind_of(model));
  const bool half = element.name == "float16" || element.name == "int8";
  if (kind == "mlProgram" ? element.program.empty() : (half && !is_pipeline(kind)))
    return fail(ErrorCode::invalid_argument, "'", name, "': features of ", name_of_kind(kind), " cannot be ",
                element.name);
  MOKA_TRY(find_features(model, name, side));
  if (is_pipeline(kind)) {
    const std::vector<Stage> stages = MOKA_TRY(stages_of(model));
    for (const StagePlace& place : MOKA_TRY(places_of(model, name, side)))
      MOKA_TRY_IN(
          set_element(stages[place.stage].model, name, element_name, place.is_input ? Side::inputs : Side::outputs),
          cat("stage '", stages[place.stage].name, "'"));
  }
  for (const Interface& interface : MOKA_TRY(interfaces(model)))
    for (const Feature& feature : MOKA_TRY(features(interface))) {
      if (feature.name != name || !is_on(feature, side)) continue;
      if (feature.is_state) return fail(ErrorCode::invalid_argument, "'", name, "': a state keeps its type");
      const Message array = MOKA_TRY(array_type(feature));
      MOKA_TRY(set_text(array, "dataType", std::string(element.array)));
      MOKA_TRY_IN(change_default(array, element), cat("'", name, "'"));
      if (kind != "mlProgram") continue;
      const ProgramFunction function = MOKA_TRY(function_of(model, interface));
      MOKA_TRY(feature.is_input ? change_input(function, feature.name, element)
                                : change_output(function, feature.name, element));
    }
  const Message description = MOKA_TRY(model.edit("description"));
  if (side != Side::outputs)
    for (const Message& training : MOKA_TRY(description.children("trainingInput")))
      if (MOKA_TRY(has_text(training, "name", name)))
        MOKA_TRY(set_text(MOKA_TRY(array_type({std::string(name), true, false, training})), "dataType",
                          std::string(element.array)));
  return need_version(model, element.version);
}

}  // namespace moka::editing
