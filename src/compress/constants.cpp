// SPDX-License-Identifier: Apache-2.0
#include "compress/constants.h"

#include <map>
#include <set>

#include "compress/messages.h"

namespace moka::compress {

using format::Message;

Result<std::string> result_name(const Message& operation) {
  const auto outputs = MOKA_TRY(operation.children("outputs"));
  return outputs.empty() ? std::string() : text_of(outputs[0], "name");
}

int opset_number(const std::string& name) {
  constexpr std::string_view prefix = "CoreML";
  return name.starts_with(prefix) ? std::atoi(name.c_str() + prefix.size()) : 0;
}

Result<int> opset_of(const Message& function) { return opset_number(MOKA_TRY(text_of(function, "opset"))); }

Result<std::vector<Message>> blocks_of(const Message& function) {
  std::vector<Message> out;
  for (const Message& entry : MOKA_TRY(function.children("block_specializations")))
    if (MOKA_TRY(entry.count("value")) > 0) out.push_back(MOKA_TRY(entry.child("value")));
  return out;
}

namespace {

/// Whether a constant is the boolean true.
Result<bool> is_true(const Message& operation) {
  const auto value = MOKA_TRY(find(operation, "attributes", "val"));
  if (!value || MOKA_TRY(value->which("value")) != "immediateValue") return false;
  const Message immediate = MOKA_TRY(value->child("immediateValue"));
  if (MOKA_TRY(immediate.which("value")) != "tensor") return false;
  const Message tensor = MOKA_TRY(immediate.child("tensor"));
  if (MOKA_TRY(tensor.which("value")) != "bools") return false;
  const auto values = MOKA_TRY(MOKA_TRY(tensor.child("bools")).values("values"));
  return values.size() == 1 && std::get<bool>(values[0]);
}

/// The uses of constants. Blocks beside each other may use a name for different values.
class UsesReader {
 public:
  /// The uses of constants, by the constant's index among the operations of the function.
  using Uses = std::map<size_t, std::vector<Use>>;

  Result<Uses> read(const Message& function) {
    for (const Message& block : MOKA_TRY(blocks_of(function))) MOKA_TRY(read_block(block));
    return std::move(uses_);
  }

 private:
  using Inputs = std::map<std::string, std::vector<std::string>>;

  Status read_block(const Message& block) {
    scopes_.emplace_back();
    for (const Message& op : MOKA_TRY(block.children("operations"))) {
      const size_t number = count_++;
      const std::string type = MOKA_TRY(text_of(op, "type"));
      add_uses(type, MOKA_TRY(inputs_of(op)));
      for (const Message& inner : MOKA_TRY(op.children("blocks"))) MOKA_TRY(read_block(inner));
      for (const Message& output : MOKA_TRY(op.children("outputs")))
        scopes_.back()[MOKA_TRY(text_of(output, "name"))] = number;
      if (type == "const" && MOKA_TRY(is_true(op))) true_.insert(number);
    }
    scopes_.pop_back();
    return {};
  }

  static Result<Inputs> inputs_of(const Message& op) {
    Inputs out;
    for (const Message& entry : MOKA_TRY(op.children("inputs"))) {
      if (MOKA_TRY(entry.count("value")) == 0) continue;
      std::vector<std::string>& names = out[MOKA_TRY(text_of(entry, "key"))];
      for (const Message& binding : MOKA_TRY(MOKA_TRY(entry.child("value")).children("arguments")))
        if (MOKA_TRY(binding.which("binding")) == "name") names.push_back(MOKA_TRY(text_of(binding, "name")));
    }
    return out;
  }

  void add_uses(const std::string& type, const Inputs& inputs) {
    for (const auto& [parameter, names] : inputs) {
      const auto flag = inputs.find("transpose_" + parameter);
      const auto by = flag != inputs.end() && flag->second.size() == 1 ? operation_of(flag->second[0]) : std::nullopt;
      for (const std::string& name : names)
        if (const auto op = operation_of(name)) uses_[*op].push_back({type, parameter, by && true_.contains(*by)});
    }
  }

  /// The operation that gives a value.
  std::optional<size_t> operation_of(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto it = scope->find(name); it != scope->end()) return it->second;
    return std::nullopt;
  }

  size_t count_ = 0;
  std::vector<std::map<std::string, size_t>> scopes_;
  std::set<size_t> true_;
  Uses uses_;
};

Result<std::optional<Found>> read_constant(const Message& op, const std::vector<Use>& uses, Form form) {
  const std::optional<Found> none;
  if (MOKA_TRY(text_of(op, "type")) != "const" || uses.empty()) return none;
  for (const Use& use : uses)
    if (use.type.starts_with("constexpr_")) return none;
  const auto value = MOKA_TRY(find(op, "attributes", "val"));
  if (!value || MOKA_TRY(value->which("value")) != "blobFileValue") return none;
  const Message type = MOKA_TRY(value->child("type"));
  const auto shape = MOKA_TRY(shape_of(type));
  if (!shape || shape->size() < 2) return none;
  const std::string number = MOKA_TRY(text_of(MOKA_TRY(type.child("tensorType")), "dataType"));
  if (number != "FLOAT16" && number != "FLOAT32") return none;
  const Message blob = MOKA_TRY(value->child("blobFileValue"));
  Found out{op, MOKA_TRY(result_name(op)), {}, 0, *shape, number == "FLOAT16", uses, form};
  out.file = MOKA_TRY(text_of(blob, "fileName"));
  out.offset = static_cast<uint64_t>(MOKA_TRY(editing::integer_of(blob, "offset")));
  return std::optional<Found>(std::move(out));
}

Result<Form> form_of(const Message& function) {
  const int opset = MOKA_TRY(opset_of(function));
  if (opset < kOpsetOfIos16)
    return fail(ErrorCode::unsupported, "compressed weights need a program for iOS 16 or later (CoreML6), got '",
                MOKA_TRY(text_of(function, "opset")), "'; 'moka edit --target ios16' raises it");
  return opset >= kOpsetOfIos18 ? Form::ios18 : Form::ios16;
}

}  // namespace

std::optional<Axes> axes_of(const Found& found) {
  const auto rank = static_cast<int64_t>(found.shape.size());
  std::optional<Axes> out;
  for (const Use& use : found.uses) {
    Axes axes{0, 1};
    if (use.type == "conv_transpose") axes = {1, 0};
    const bool is_product = use.type == "matmul";
    if (is_product && use.parameter == "y") axes = use.transposed ? Axes{rank - 2, rank - 1} : Axes{rank - 1, rank - 2};
    if (is_product && use.parameter == "x") axes = use.transposed ? Axes{rank - 1, rank - 2} : Axes{rank - 2, rank - 1};
    if (out && *out != axes) return std::nullopt;
    out = axes;
  }
  return out;
}

Result<std::vector<Found>> constants_of(const format::ModelSource& source) {
  std::vector<Found> out;
  size_t programs = 0;
  MOKA_TRY(each(source.specification, "MILSpec.Function", [&](const Message& function) -> Status {
    ++programs;
    const Form form = MOKA_TRY(form_of(function));
    const auto uses = MOKA_TRY(UsesReader().read(function));
    size_t count = 0;
    return each(function, "MILSpec.Operation", [&](const Message& op) -> Status {
      const size_t number = count++;
      const auto it = uses.find(number);
      if (it == uses.end()) return {};
      if (auto found = MOKA_TRY(read_constant(op, it->second, form))) {
        found->function = programs - 1;
        found->number = number;
        out.push_back(*std::move(found));
      }
      return {};
    });
  }));
  return out;
}

}  // namespace moka::compress
