// SPDX-License-Identifier: Apache-2.0
#include "editing/operations.h"

namespace moka::editing {

Result<Operations> Operations::of(const ProgramFunction& function) {
  Operations out(function);
  out.names = MOKA_TRY(names_in(function));
  out.list = MOKA_TRY(function.block.children("operations"));
  return out;
}

Result<std::string> Operations::insert(size_t& at, const std::string& type,
                                       const std::vector<std::pair<std::string, std::string>>& arguments,
                                       const std::string& base, const TensorType& type_of_output) {
  const std::string name = unique_name(base, names);
  const Message made = MOKA_TRY(make_operation(type, arguments, name, type_of_output));
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(at++), made);
  return name;
}

Result<std::string> Operations::insert_constant(size_t& at, const Message& value, const std::string& base) {
  const std::string name = unique_name(base, names);
  const Message made = MOKA_TRY(make_constant(name, value));
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(at++), made);
  return name;
}

namespace {

/// The outputs of the operation's blocks, and of the blocks inside them.
Status replace_block_outputs(const Message& operation, const Names& names) {
  for (const Message& block : MOKA_TRY(operation.children("blocks"))) {
    MOKA_TRY(rename_outputs(block, names));
    for (const Message& inner : MOKA_TRY(block.children("operations"))) MOKA_TRY(replace_block_outputs(inner, names));
  }
  return {};
}

Status replace_in(const Message& operation, const Names& names) {
  MOKA_TRY(for_bindings(operation, [&](Message binding) -> Status {
    if (MOKA_TRY(binding.which("binding")) != "name") return {};
    const auto it = names.find(MOKA_TRY(text_of(binding, "name")));
    return it == names.end() ? Status() : set_text(binding, "name", it->second);
  }));
  return replace_block_outputs(operation, names);
}

}  // namespace

Status Operations::replace_uses(const std::string& from, const std::string& to, size_t first, bool outputs) {
  const Names names{{from, to}};
  for (size_t i = first; i < list.size(); ++i) MOKA_TRY(replace_in(list[i], names));
  return outputs ? rename_outputs(function_.block, names) : Status();
}

Status Operations::replace_uses(const Names& names) {
  for (const Message& op : list) MOKA_TRY(replace_in(op, names));
  return {};
}

Result<bool> Operations::is_read(const std::string& value, size_t first) const {
  for (size_t i = first; i < list.size(); ++i)
    for (const std::string& name : MOKA_TRY(values_read(list[i])))
      if (name == value) return true;
  return is_returned(value);
}

Result<bool> Operations::is_returned(const std::string& value) const {
  for (const std::string& name : MOKA_TRY(texts_of(function_.block, "outputs")))
    if (name == value) return true;
  return false;
}

Result<Operations::Definition> Operations::definition_of_output(const std::string& name) const {
  for (size_t i = 0; i < list.size(); ++i)
    for (const Message& output : MOKA_TRY(list[i].children("outputs"))) {
      if (!MOKA_TRY(has_text(output, "name", name))) continue;
      const auto type = MOKA_TRY(tensor_type(MOKA_TRY(output.child("type"))));
      if (!type) return fail(ErrorCode::unsupported, "output '", name, "': expected a tensor of known rank");
      return Definition{i, output, *type};
    }
  return fail(ErrorCode::invalid_argument, "output '", name, "': the program returns an input; change the input");
}

Result<std::map<std::string, TensorType>> Operations::types() const {
  std::map<std::string, TensorType> out;
  const auto add = [&](const Message& named) -> Status {
    const std::optional<TensorType> type = MOKA_TRY(tensor_type(MOKA_TRY(child_or_empty(named, "type"))));
    if (type) out[MOKA_TRY(text_of(named, "name"))] = *type;
    return {};
  };
  for (const Message& input : MOKA_TRY(function_.function.children("inputs"))) MOKA_TRY(add(input));
  for (const Message& op : list)
    for (const Message& output : MOKA_TRY(op.children("outputs"))) MOKA_TRY(add(output));
  return out;
}

Status Operations::drop_constants() {
  std::set<std::string> read;
  for (const Message& op : list)
    for (std::string& name : MOKA_TRY(values_read(op))) read.insert(std::move(name));
  for (std::string& name : MOKA_TRY(texts_of(function_.block, "outputs"))) read.insert(std::move(name));
  std::vector<Message> kept;
  for (const Message& op : list) {
    bool needed = !MOKA_TRY(has_text(op, "type", "const"));
    for (const std::string& name : MOKA_TRY(values_defined(op))) needed |= read.contains(name);
    if (needed) kept.push_back(op);
  }
  list = std::move(kept);
  return {};
}

Status Operations::write() { return function_.block.set_all("operations", list); }

}  // namespace moka::editing
