#include "compress/constants.h"

#include <map>
#include <set>

#include "compress/messages.h"

namespace moka::compress {

using format::Message;

Result<std::string> text(const Message& message, std::string_view field) {
  const auto values = MOKA_TRY(message.values(field));
  return values.empty() ? std::string() : std::get<std::string>(values[0]);
}

Result<std::string> result_name(const Message& operation) {
  const auto outputs = MOKA_TRY(operation.children("outputs"));
  return outputs.empty() ? std::string() : text(outputs[0], "name");
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

/// The uses of every value in a function by name.
Result<std::map<std::string, std::vector<Use>>> uses_in(const Message& function) {
  std::set<std::string> true_values;
  MOKA_TRY(each(function, "MILSpec.Operation", [&](const Message& op) -> Status {
    if (MOKA_TRY(text(op, "type")) == "const" && MOKA_TRY(is_true(op))) true_values.insert(MOKA_TRY(result_name(op)));
    return {};
  }));
  std::map<std::string, std::vector<Use>> out;
  MOKA_TRY(each(function, "MILSpec.Operation", [&](const Message& op) -> Status {
    const std::string type = MOKA_TRY(text(op, "type"));
    std::map<std::string, std::vector<std::string>> inputs;
    for (const Message& entry : MOKA_TRY(op.children("inputs"))) {
      if (MOKA_TRY(entry.count("value")) == 0) continue;
      std::vector<std::string>& names = inputs[MOKA_TRY(text(entry, "key"))];
      for (const Message& binding : MOKA_TRY(MOKA_TRY(entry.child("value")).children("arguments"))) {
        const std::string kind = MOKA_TRY(binding.which("binding"));
        if (kind == "name") names.push_back(MOKA_TRY(text(binding, "name")));
      }
    }
    for (const auto& [parameter, names] : inputs)
      for (const std::string& name : names) {
        const auto& flag = inputs["transpose_" + parameter];
        out[name].push_back({type, parameter, flag.size() == 1 && true_values.count(flag[0]) > 0});
      }
    return {};
  }));
  return out;
}

Result<std::optional<Found>> read_constant(const Message& op, const std::vector<Use>& uses, Form form) {
  const std::optional<Found> none;
  if (MOKA_TRY(text(op, "type")) != "const" || uses.empty()) return none;
  for (const Use& use : uses)
    if (use.type.starts_with("constexpr_")) return none;
  const auto value = MOKA_TRY(find(op, "attributes", "val"));
  if (!value || MOKA_TRY(value->which("value")) != "blobFileValue") return none;
  const Message type = MOKA_TRY(value->child("type"));
  const auto shape = MOKA_TRY(shape_of(type));
  if (!shape || shape->size() < 2) return none;
  const std::string number = MOKA_TRY(text(MOKA_TRY(type.child("tensorType")), "dataType"));
  if (number != "FLOAT16" && number != "FLOAT32") return none;
  const Message blob = MOKA_TRY(value->child("blobFileValue"));
  const auto offset = MOKA_TRY(blob.values("offset"));
  Found out{op, MOKA_TRY(result_name(op)), {}, 0, *shape, number == "FLOAT16", uses, form};
  out.file = MOKA_TRY(text(blob, "fileName"));
  out.offset = offset.empty() ? 0 : std::get<uint64_t>(offset[0]);
  return std::optional<Found>(std::move(out));
}

Result<Form> form_of(const Message& function) {
  const std::string opset = MOKA_TRY(text(function, "opset"));
  constexpr std::string_view prefix = "CoreML";
  const int version = opset.starts_with(prefix) ? std::atoi(opset.c_str() + prefix.size()) : 0;
  constexpr int ios16 = 6, ios18 = 8;
  if (version < ios16)
    return fail(ErrorCode::unsupported, "compressed weights need a program for iOS 16 or later (CoreML6), got '", opset,
                "'; 'moka edit --target ios16' raises it");
  return version >= ios18 ? Form::ios18 : Form::ios16;
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
    const auto uses = MOKA_TRY(uses_in(function));
    return each(function, "MILSpec.Operation", [&](const Message& op) -> Status {
      const auto it = uses.find(MOKA_TRY(result_name(op)));
      if (it == uses.end()) return {};
      if (auto found = MOKA_TRY(read_constant(op, it->second, form))) {
        found->function = programs - 1;
        out.push_back(*std::move(found));
      }
      return {};
    });
  }));
  return out;
}

}  // namespace moka::compress
