// SPDX-License-Identifier: Apache-2.0
#include "editing/program.h"

#include <algorithm>

#include "base/half.h"

namespace moka::editing {

Result<std::vector<ProgramFunction>> program_functions(const Message& model) {
  std::vector<ProgramFunction> out;
  const Message program = MOKA_TRY(model.child("mlProgram"));
  for (const Message& entry : MOKA_TRY(program.children("functions"))) {
    const std::string name = MOKA_TRY(text_of(entry, "key"));
    const Message function = MOKA_TRY(entry.child("value"));
    const std::string opset = MOKA_TRY(text_of(function, "opset"));
    Result<Message> block = map_value(function, "block_specializations", opset);
    if (!block.ok())
      return fail(ErrorCode::malformed, "function '", name, "': expected a block for opset '", opset, "', got none");
    out.push_back({name, opset, function, std::move(block).value()});
  }
  return out;
}

Result<ProgramFunction> function_of(const Message& model, const Interface& interface) {
  const std::vector<ProgramFunction> all = MOKA_TRY(program_functions(model));
  for (const ProgramFunction& f : all)
    if (f.name == interface.function) return f;
  if (all.size() == 1) return all[0];
  return fail(ErrorCode::malformed, "function '", interface.function,
              "' is described, but the program does not have it");
}

Result<std::optional<TensorType>> tensor_type(const Message& value_type) {
  if (MOKA_TRY(value_type.which("type")) != "tensorType") return std::nullopt;
  const Message tensor = MOKA_TRY(value_type.child("tensorType"));
  if (MOKA_TRY(integer_of(tensor, "rank")) < 0) return std::nullopt;
  TensorType out{MOKA_TRY(text_of(tensor, "dataType")), {}};
  for (const Message& dimension : MOKA_TRY(tensor.children("dimensions"))) {
    const bool known = MOKA_TRY(dimension.which("dimension")) == "constant";
    out.shape.push_back(known ? MOKA_TRY(integer_of(MOKA_TRY(dimension.child("constant")), "size")) : -1);
  }
  return out;
}

Result<Message> make_type(const TensorType& type) {
  Message out = MOKA_TRY(Message::make("MILSpec.ValueType"));
  Message tensor = MOKA_TRY(out.edit("tensorType"));
  MOKA_TRY(set_text(tensor, "dataType", type.element));
  MOKA_TRY(set_integer(tensor, "rank", static_cast<int64_t>(type.shape.size())));
  for (int64_t size : type.shape) {
    Message dimension = MOKA_TRY(tensor.edit("dimensions"));
    const Message held = MOKA_TRY(dimension.edit(size < 0 ? "unknown" : "constant"));
    if (size >= 0) MOKA_TRY(set_integer(held, "size", size));
  }
  return out;
}

Result<Message> make_named(const std::string& name, const TensorType& type) {
  Message out = MOKA_TRY(Message::make("MILSpec.NamedValueType"));
  MOKA_TRY(set_text(out, "name", name));
  MOKA_TRY(out.set("type", MOKA_TRY(make_type(type))));
  return out;
}

Result<Message> make_value(const TensorType& type, const std::vector<double>& numbers) {
  Message out = MOKA_TRY(Message::make("MILSpec.Value"));
  MOKA_TRY(out.set("type", MOKA_TRY(make_type(type))));
  Message immediate = MOKA_TRY(out.edit("immediateValue"));
  Message tensor = MOKA_TRY(immediate.edit("tensor"));
  const bool is_half = type.element == "FLOAT16";
  if (is_half || type.element == "INT8" || type.element == "UINT8") {
    std::string bytes;
    for (double number : numbers) {
      if (is_half) {
        const uint16_t half = moka::half(number).bits;
        bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
      } else {
        bytes.push_back(static_cast<char>(static_cast<int>(number)));
      }
    }
    Message held = MOKA_TRY(tensor.edit("bytes"));
    MOKA_TRY(held.set_packed("values", Bytes::from(std::move(bytes))));
    return out;
  }
  std::vector<format::Scalar> values;
  for (double number : numbers) {
    if (type.element == "FLOAT32")
      values.emplace_back(number);
    else if (type.element == "BOOL")
      values.emplace_back(number != 0);
    else
      values.emplace_back(static_cast<int64_t>(number));
  }
  Message held = MOKA_TRY(tensor.edit(type.element == "FLOAT32" ? "floats"
                                      : type.element == "BOOL"  ? "bools"
                                                                : "ints"));
  MOKA_TRY(held.set_all("values", values));
  return out;
}

Result<Message> make_text(const std::string& text) {
  Message out = MOKA_TRY(Message::make("MILSpec.Value"));
  MOKA_TRY(out.set("type", MOKA_TRY(make_type({"STRING", {}}))));
  Message immediate = MOKA_TRY(out.edit("immediateValue"));
  Message tensor = MOKA_TRY(immediate.edit("tensor"));
  Message strings = MOKA_TRY(tensor.edit("strings"));
  MOKA_TRY(set_texts(strings, "values", {text}));
  return out;
}

Status for_bindings(const Message& operation, const std::function<Status(Message)>& visit) {
  for (const Message& entry : MOKA_TRY(operation.children("inputs")))
    for (const Message& argument : MOKA_TRY(entry.children("value")))
      for (const Message& binding : MOKA_TRY(argument.children("arguments"))) MOKA_TRY(visit(binding));
  for (const Message& block : MOKA_TRY(operation.children("blocks")))
    for (const Message& inner : MOKA_TRY(block.children("operations"))) MOKA_TRY(for_bindings(inner, visit));
  return {};
}

Result<std::vector<std::string>> values_read(const Message& operation) {
  std::vector<std::string> out;
  MOKA_TRY(for_bindings(operation, [&](const Message& binding) -> Status {
    for (std::string& name : MOKA_TRY(texts_of(binding, "name"))) out.push_back(std::move(name));
    return {};
  }));
  // A block may return a value from outside.
  const std::function<Status(const Message&)> add_returned = [&](const Message& op) -> Status {
    for (const Message& block : MOKA_TRY(op.children("blocks"))) {
      for (std::string& name : MOKA_TRY(texts_of(block, "outputs"))) out.push_back(std::move(name));
      for (const Message& inner : MOKA_TRY(block.children("operations"))) MOKA_TRY(add_returned(inner));
    }
    return {};
  };
  MOKA_TRY(add_returned(operation));
  return out;
}

Result<std::vector<std::string>> values_defined(const Message& operation) {
  std::vector<std::string> out;
  for (const Message& output : MOKA_TRY(operation.children("outputs")))
    out.push_back(MOKA_TRY(text_of(output, "name")));
  return out;
}

Result<bool> has_effect(const Message& operation) {
  const std::string type = MOKA_TRY(text_of(operation, "type"));
  if (type == "write_state" || type == "coreml_update_state" || type == "print") return true;
  for (const Message& block : MOKA_TRY(operation.children("blocks")))
    for (const Message& inner : MOKA_TRY(block.children("operations")))
      if (MOKA_TRY(has_effect(inner))) return true;
  return false;
}

Result<std::string> operation_name(const Message& operation) {
  const Result<Message> name = map_value(operation, "attributes", "name");
  if (name.ok()) {
    const Message immediate = MOKA_TRY(child_or_empty(name.value(), "immediateValue"));
    const Message tensor = MOKA_TRY(child_or_empty(immediate, "tensor"));
    std::string text = MOKA_TRY(text_of(MOKA_TRY(child_or_empty(tensor, "strings")), "values"));
    if (!text.empty()) return text;
  }
  const std::vector<std::string> outputs = MOKA_TRY(values_defined(operation));
  return outputs.empty() ? std::string() : outputs[0];
}

Status rename_outputs(Message block, const Names& names) {
  std::vector<std::string> outputs = MOKA_TRY(texts_of(block, "outputs"));
  bool changed = false;
  for (std::string& output : outputs)
    if (const auto it = names.find(output); it != names.end()) {
      output = it->second;
      changed = true;
    }
  return changed ? set_texts(block, "outputs", outputs) : Status();
}

namespace {

Status add_names(const Message& block, std::set<std::string>& names) {
  for (const Message& input : MOKA_TRY(block.children("inputs"))) names.insert(MOKA_TRY(text_of(input, "name")));
  for (const Message& op : MOKA_TRY(block.children("operations"))) {
    for (std::string& name : MOKA_TRY(values_defined(op))) names.insert(std::move(name));
    for (const Message& inner : MOKA_TRY(op.children("blocks"))) MOKA_TRY(add_names(inner, names));
  }
  return {};
}

Status rename_field(Message message, std::string_view field, const Names& names) {
  const auto it = names.find(MOKA_TRY(text_of(message, field)));
  return it == names.end() ? Status() : set_text(message, field, it->second);
}

Status rename_in_block(Message block, const Names& names) {
  for (const Message& input : MOKA_TRY(block.children("inputs"))) MOKA_TRY(rename_field(input, "name", names));
  for (const Message& op : MOKA_TRY(block.children("operations"))) {
    for (const Message& output : MOKA_TRY(op.children("outputs"))) MOKA_TRY(rename_field(output, "name", names));
    for (const Message& entry : MOKA_TRY(op.children("inputs")))
      for (const Message& argument : MOKA_TRY(entry.children("value")))
        for (const Message& binding : MOKA_TRY(argument.children("arguments"))) {
          const std::string kind = MOKA_TRY(binding.which("binding"));
          if (kind == "name") MOKA_TRY(rename_field(binding, "name", names));
        }
    for (const Message& inner : MOKA_TRY(op.children("blocks"))) MOKA_TRY(rename_in_block(inner, names));
  }
  return rename_outputs(block, names);
}

/// `taken`: the names of values before the block.
Status make_unique_in_block(const Message& block, std::set<std::string>& taken) {
  std::vector<std::string> own;
  for (const Message& input : MOKA_TRY(block.children("inputs"))) own.push_back(MOKA_TRY(text_of(input, "name")));
  for (const Message& op : MOKA_TRY(block.children("operations")))
    for (std::string& name : MOKA_TRY(values_defined(op))) own.push_back(std::move(name));
  Names others;
  for (const std::string& name : own)
    if (!taken.insert(name).second) others.emplace(name, unique_name(name, taken));
  if (!others.empty()) MOKA_TRY(rename_in_block(block, others));
  for (const Message& op : MOKA_TRY(block.children("operations")))
    for (const Message& inner : MOKA_TRY(op.children("blocks"))) MOKA_TRY(make_unique_in_block(inner, taken));
  return {};
}

}  // namespace

Status make_names_unique(const ProgramFunction& function) {
  std::set<std::string> taken;
  for (const Message& input : MOKA_TRY(function.function.children("inputs")))
    taken.insert(MOKA_TRY(text_of(input, "name")));
  return make_unique_in_block(function.block, taken);
}

Result<std::set<std::string>> names_in(const ProgramFunction& function) {
  std::set<std::string> out;
  for (const Message& input : MOKA_TRY(function.function.children("inputs")))
    out.insert(MOKA_TRY(text_of(input, "name")));
  MOKA_TRY(add_names(function.block, out));
  return out;
}

std::string unique_name(const std::string& base, std::set<std::string>& names) {
  std::string name = base;
  for (int i = 1; !names.insert(name).second; ++i) name = cat(base, "_", i);
  return name;
}

Status rename_values(const ProgramFunction& function, const Names& names) {
  if (names.empty()) return {};
  for (const Message& input : MOKA_TRY(function.function.children("inputs")))
    MOKA_TRY(rename_field(input, "name", names));
  return rename_in_block(function.block, names);
}

Result<Message> make_operation(const std::string& type, const std::vector<std::pair<std::string, std::string>>& inputs,
                               const std::string& output, const TensorType& type_of_output) {
  Message out = MOKA_TRY(Message::make("MILSpec.Operation"));
  MOKA_TRY(set_text(out, "type", type));
  for (const auto& [parameter, value] : inputs) {
    Message entry = MOKA_TRY(out.edit("inputs"));
    MOKA_TRY(set_text(entry, "key", parameter));
    Message argument = MOKA_TRY(entry.edit("value"));
    MOKA_TRY(set_text(MOKA_TRY(argument.edit("arguments")), "name", value));
  }
  MOKA_TRY(out.set("outputs", MOKA_TRY(make_named(output, type_of_output))));
  Message name = MOKA_TRY(out.edit("attributes"));
  MOKA_TRY(set_text(name, "key", "name"));
  MOKA_TRY(name.set("value", MOKA_TRY(make_text(output))));
  return out;
}

Result<Message> make_constant(const std::string& name, const Message& value) {
  const auto type = MOKA_TRY(tensor_type(MOKA_TRY(value.child("type"))));
  Message out = MOKA_TRY(make_operation("const", {}, name, type.value_or(TensorType{"FLOAT32", {}})));
  if (!type) {
    Message declared = MOKA_TRY(out.child("outputs"));
    MOKA_TRY(declared.set("type", MOKA_TRY(value.child("type"))));
  }
  Message held = MOKA_TRY(out.edit("attributes"));
  MOKA_TRY(set_text(held, "key", "val"));
  MOKA_TRY(held.set("value", value));
  return out;
}

}  // namespace moka::editing
