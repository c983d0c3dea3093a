// SPDX-License-Identifier: Apache-2.0
#include "linting/repair.h"

#include <algorithm>
#include <set>

#include "editing/operations.h"
#include "editing/weights.h"

namespace moka::linting {
namespace {

using editing::Message;
using editing::ProgramFunction;

Result<bool> is_program(const format::ModelSource& source) {
  return MOKA_TRY(editing::kind_of(source.specification)) == "mlProgram";
}

Result<size_t> drop_unused_of(const ProgramFunction& function) {
  std::vector<Message> operations = MOKA_TRY(function.block.children("operations"));
  std::set<std::string> read;
  for (std::string& name : MOKA_TRY(editing::texts_of(function.block, "outputs"))) read.insert(std::move(name));
  std::vector<Message> kept;
  size_t dropped = 0;
  for (auto op = operations.rbegin(); op != operations.rend(); ++op) {
    const std::string type = MOKA_TRY(editing::text_of(*op, "type"));
    bool needed = MOKA_TRY(editing::has_effect(*op));
    for (const std::string& name : MOKA_TRY(editing::values_defined(*op))) needed |= read.contains(name);
    if (!needed) {
      dropped += type != "const";
      continue;
    }
    for (std::string& name : MOKA_TRY(editing::values_read(*op))) read.insert(std::move(name));
    kept.push_back(*op);
  }
  if (kept.size() == operations.size()) return dropped;
  std::reverse(kept.begin(), kept.end());
  MOKA_TRY(Message(function.block).set_all("operations", kept));
  return dropped;
}

/// The replacements with the value that is left where one is replaced itself.
editing::Names resolved(const editing::Names& all) {
  editing::Names out;
  std::vector<std::string> chain;
  for (const auto& [from, to] : all) {
    std::string last = from;
    for (chain.clear(); !out.contains(last) && all.contains(last); last = all.at(last)) chain.push_back(last);
    if (const auto known = out.find(last); known != out.end()) last = known->second;
    for (const std::string& name : chain) out.emplace(name, last);
  }
  return out;
}

/// Drops the operations that define the values, and the constants that only these read.
Status drop(editing::Operations& operations, const editing::Names& values) {
  std::set<std::string> were_read, read;
  std::vector<Message> kept;
  for (const Message& op : operations.list) {
    const std::vector<std::string> defined = MOKA_TRY(editing::values_defined(op));
    bool replaced = !defined.empty();
    for (const std::string& name : defined) replaced &= values.contains(name);
    for (std::string& name : MOKA_TRY(editing::values_read(op))) (replaced ? were_read : read).insert(std::move(name));
    if (!replaced) kept.push_back(op);
  }
  operations.list.clear();
  for (const Message& op : kept) {
    bool needed = !MOKA_TRY(editing::has_text(op, "type", "const"));
    for (const std::string& name : MOKA_TRY(editing::values_defined(op)))
      needed |= read.contains(name) || !were_read.contains(name) || MOKA_TRY(operations.is_returned(name));
    if (needed) operations.list.push_back(op);
  }
  return {};
}

}  // namespace

Status replace_values(format::ModelSource& source, const Replacements& replacements) {
  if (!MOKA_TRY(is_program(source))) return {};
  for (const ProgramFunction& function : MOKA_TRY(editing::program_functions(source.specification))) {
    const auto mine = replacements.find(function.name);
    if (mine == replacements.end()) continue;
    const editing::Names all(mine->second.begin(), mine->second.end());
    editing::Operations operations = MOKA_TRY(editing::Operations::of(function));
    MOKA_TRY(operations.replace_uses(resolved(all)));
    MOKA_TRY(drop(operations, all));
    MOKA_TRY(operations.write());
  }
  return {};
}

Status undo_transposes(format::ModelSource& source, const AxisOrders& values) {
  if (!MOKA_TRY(is_program(source))) return {};
  for (const ProgramFunction& function : MOKA_TRY(editing::program_functions(source.specification))) {
    const auto mine = values.find(function.name);
    if (mine == values.end()) continue;
    for (const Message& op : MOKA_TRY(function.block.children("operations")))
      for (Message output : MOKA_TRY(op.children("outputs"))) {
        const auto order = mine->second.find(MOKA_TRY(editing::text_of(output, "name")));
        if (order == mine->second.end()) continue;
        auto type = MOKA_TRY(editing::tensor_type(MOKA_TRY(output.child("type"))));
        if (!type || type->shape.size() != order->second.size()) continue;
        const std::vector<int64_t> transposed = type->shape;
        for (size_t i = 0; i < transposed.size(); ++i)
          type->shape[static_cast<size_t>(order->second[i])] = transposed[i];
        MOKA_TRY(output.set("type", MOKA_TRY(editing::make_type(*type))));
      }
  }
  return {};
}

Result<size_t> drop_unused(format::ModelSource& source) {
  if (!MOKA_TRY(is_program(source))) return size_t{0};
  size_t dropped = 0;
  for (const ProgramFunction& function : MOKA_TRY(editing::program_functions(source.specification)))
    dropped += MOKA_TRY(drop_unused_of(function));
  MOKA_TRY(editing::drop_unused_weights(source));
  return dropped;
}

size_t weight_bytes(const format::ModelSource& source) {
  size_t out = 0;
  for (const auto& [name, content] : source.weights) out += content.size();
  return out;
}

}  // namespace moka::linting
