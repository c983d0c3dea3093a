// SPDX-License-Identifier: Apache-2.0
#include "compress/activations.h"

#include "compress/activation_sites.h"
#include "compress/constants.h"
#include "compress/scale.h"

namespace moka::compress {
namespace {

using editing::Message;
using editing::TensorType;

/// The float tensors of a function that are not constants.
Result<std::map<std::string, TensorType>> float_values(const editing::ProgramFunction& function) {
  std::map<std::string, TensorType> out;
  std::set<std::string> seen, twice;
  const auto add = [&](const Message& named) -> Status {
    const std::string name = MOKA_TRY(text_of(named, "name"));
    if (!seen.insert(name).second) twice.insert(name);
    if (MOKA_TRY(named.count("type")) == 0) return {};
    const auto type = MOKA_TRY(editing::tensor_type(MOKA_TRY(named.child("type"))));
    if (type && (type->element == "FLOAT16" || type->element == "FLOAT32")) out.emplace(name, *type);
    return {};
  };
  for (const Message& input : MOKA_TRY(function.function.children("inputs"))) MOKA_TRY(add(input));
  MOKA_TRY(each(function.block, "MILSpec.Operation", [&](const Message& op) -> Status {
    const std::string type = MOKA_TRY(text_of(op, "type"));
    if (type == "const" || type.starts_with("constexpr_")) return {};
    for (const Message& output : MOKA_TRY(op.children("outputs"))) MOKA_TRY(add(output));
    return {};
  }));
  // Blocks beside each other may use a name for different values.
  for (const std::string& name : twice) out.erase(name);
  return out;
}

class ActivationWriter {
 public:
  ActivationWriter(const editing::ProgramFunction& function, const ActivationSites& sites,
                   const std::map<std::string, TensorType>& types, const ValueRanges& ranges,
                   const Activations& activations, std::set<std::string> names)
      : function_(function),
        sites_(sites),
        types_(types),
        ranges_(ranges),
        activations_(activations),
        names_(std::move(names)) {}

  Result<std::vector<QuantizedValue>> write() {
    std::vector<Message> begin;
    for (const Message& input : MOKA_TRY(function_.function.children("inputs")))
      MOKA_TRY(quantize(MOKA_TRY(text_of(input, "name")), begin));
    MOKA_TRY(write(function_.block, std::move(begin)));
    std::vector<QuantizedValue> out;
    for (const std::string& value : order_) out.push_back(made_.at(value).value);
    return out;
  }

 private:
  struct Made {
    QuantizedValue value;
    std::string integers = {}, scale = {}, zero_point = {}, rounded = {};  ///< names of values
  };

  /// The operations of a block, with those in `out` before them.
  Status write(Message block, std::vector<Message> out) {
    for (const Message& op : MOKA_TRY(block.children("operations"))) {
      for (const Message& inner : MOKA_TRY(op.children("blocks"))) MOKA_TRY(write(inner, {}));
      MOKA_TRY(read_integers(op, out));
      out.push_back(op);
      for (const Message& output : MOKA_TRY(op.children("outputs")))
        MOKA_TRY(quantize(MOKA_TRY(text_of(output, "name")), out));
    }
    return block.set_all("operations", out);
  }

  Status read_integers(const Message& op, std::vector<Message>& out) {
    const std::string result = MOKA_TRY(result_name(op));
    const auto operands = sites_.operands.find(result);
    for (const Message& entry : MOKA_TRY(op.children("inputs"))) {
      const std::string parameter = MOKA_TRY(text_of(entry, "key"));
      const bool own = operands != sites_.operands.end() && operands->second.contains(parameter);
      if (MOKA_TRY(entry.count("value")) == 0) continue;
      for (Message& binding : MOKA_TRY(MOKA_TRY(entry.child("value")).children("arguments"))) {
        const std::string name = MOKA_TRY(text_of(binding, "name"));
        const auto it = made_.find(name);
        if (it == made_.end()) continue;
        std::string rounded = it->second.rounded;
        if (own) rounded = MOKA_TRY(dequantize(it->second, cat(result, "_", parameter, "_dequantized"), out));
        if (!rounded.empty()) MOKA_TRY(binding.set("name", rounded));
      }
    }
    return {};
  }

  Status quantize(const std::string& value, std::vector<Message>& out) {
    if (!sites_.quantized.contains(value)) return {};
    const TensorType type = types_.at(value);
    const ValueRange& range = ranges_.find(value)->second;
    const Scale scale = scale_of(static_cast<float>(range.least), static_cast<float>(range.greatest),
                                 {8, activations_.symmetric, activations_.is_signed}, type.element == "FLOAT16");
    order_.push_back(value);
    Made& made = made_[value] = {{value, range, scale.scale, scale.zero}};
    const std::string integer = activations_.is_signed ? "INT8" : "UINT8";
    const auto constant = [&](const std::string& name, const Message& content) -> Result<std::string> {
      std::string unique = editing::unique_name(cat(value, "_", name), names_);
      out.push_back(MOKA_TRY(editing::make_constant(unique, content)));
      return unique;
    };
    const auto number = [](const std::string& element, double value) {
      return editing::make_value({element, {}}, {value});
    };
    made.scale = MOKA_TRY(constant("scale", MOKA_TRY(number(type.element, made.value.scale))));
    if (!activations_.symmetric || !activations_.is_signed)
      made.zero_point = MOKA_TRY(constant("zero_point", MOKA_TRY(number(integer, made.value.zero_point))));
    const std::string dtype =
        MOKA_TRY(constant("dtype", MOKA_TRY(editing::make_text(activations_.is_signed ? "int8" : "uint8"))));
    made.integers = editing::unique_name(cat(value, "_quantized"), names_);
    std::vector<std::pair<std::string, std::string>> inputs{{"input", value}, {"scale", made.scale}};
    if (!made.zero_point.empty()) inputs.emplace_back("zero_point", made.zero_point);
    inputs.emplace_back("output_dtype", dtype);
    out.push_back(MOKA_TRY(editing::make_operation("quantize", inputs, made.integers, {integer, type.shape})));
    if (sites_.everywhere.contains(value)) made.rounded = MOKA_TRY(dequantize(made, cat(value, "_dequantized"), out));
    return {};
  }

  Result<std::string> dequantize(const Made& made, const std::string& base, std::vector<Message>& out) {
    std::string name = editing::unique_name(base, names_);
    std::vector<std::pair<std::string, std::string>> inputs{{"input", made.integers}, {"scale", made.scale}};
    if (!made.zero_point.empty()) inputs.emplace_back("zero_point", made.zero_point);
    out.push_back(MOKA_TRY(editing::make_operation("dequantize", inputs, name, types_.at(made.value.name))));
    return name;
  }

  const editing::ProgramFunction& function_;
  const ActivationSites& sites_;
  const std::map<std::string, TensorType>& types_;
  const ValueRanges& ranges_;
  const Activations& activations_;
  std::set<std::string> names_;
  std::map<std::string, Made> made_;
  std::vector<std::string> order_;
};

}  // namespace

Result<std::vector<QuantizedValue>> quantize_activations(format::ModelSource& source, const ValueRanges& ranges,
                                                         const Activations& activations) {
  const std::string kind = MOKA_TRY(editing::kind_of(source.specification));
  if (kind != "mlProgram")
    return fail(ErrorCode::unsupported, "activations are quantized in ML programs, and this model is ",
                editing::name_of_kind(kind));
  const std::vector<editing::ProgramFunction> functions = MOKA_TRY(editing::program_functions(source.specification));
  if (functions.size() != 1)
    return fail(ErrorCode::unsupported, "activations are quantized in programs of one function, and this one has ",
                functions.size());
  const editing::ProgramFunction& function = functions[0];
  if (opset_number(function.opset) < kOpsetOfIos17)
    return fail(ErrorCode::unsupported, "quantized activations need a program for iOS 17 or later (CoreML7), got '",
                function.opset, "'; 'moka edit --target ios17' raises it");
  const std::map<std::string, TensorType> types = MOKA_TRY(float_values(function));
  ValueRanges known = ranges;
  MOKA_TRY(complete_ranges(function, known));
  std::erase_if(known, [&](const auto& entry) { return !types.contains(entry.first) || !entry.second.is_finite(); });
  const ActivationSites sites = MOKA_TRY(activation_sites(function, known, activations));
  return ActivationWriter(function, sites, types, known, activations, MOKA_TRY(editing::names_in(function))).write();
}

}  // namespace moka::compress
