// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/registered.h"

namespace moka::ir {

namespace {

constexpr std::string_view kCustomLayer = "custom_layer";

Result<std::string> text_attribute(const std::map<std::string, Constant>& attributes, const std::string& key) {
  const auto it = attributes.find(key);
  if (it == attributes.end()) return std::string();
  const Constant& c = it->second;
  if (!c.type.is_tensor() || c.tensor.dtype() != DType::string || c.tensor.count() != 1)
    return fail(ErrorCode::malformed, "attribute '", key, "': expected a string, got ", c.type);
  return c.tensor.text();
}

Result<std::vector<std::string>> names_attribute(const std::map<std::string, Constant>& attributes,
                                                 const std::string& key) {
  std::vector<std::string> out;
  const auto it = attributes.find(key);
  if (it == attributes.end()) return out;
  const Constant& c = it->second;
  if (c.type.is_tensor() && c.tensor.dtype() == DType::string) {
    for (const std::string& s : c.tensor.as<std::string>()) out.push_back(s);
    return out;
  }
  if (!c.type.is_list()) return fail(ErrorCode::malformed, "attribute '", key, "': expected a list, got ", c.type);
  for (const Constant& part : c.parts) {
    if (!part.type.is_tensor() || part.tensor.dtype() != DType::string || part.tensor.count() != 1)
      return fail(ErrorCode::malformed, "attribute '", key, "': expected a list of strings, got ", c.type);
    out.push_back(part.tensor.text());
  }
  return out;
}

const Constant* constant_of(const NamedArg& arg) {
  if (arg.constant) return &*arg.constant;
  return arg.values.size() == 1 && !arg.tuple ? arg.values[0]->constant() : nullptr;
}

/// Sorts the arguments of an operation into inputs, weights and parameters.
struct Sorted {
  std::vector<Value*> inputs;
  std::vector<std::string> names;
  std::vector<Tensor> weights;
  std::map<std::string, Constant> parameters;

  Status add_input(Builder& builder, const NamedArg& arg) {
    if (arg.constant) {
      inputs.push_back(MOKA_TRY(builder.constant(arg.name, *arg.constant)));
      names.push_back(arg.name);
      return {};
    }
    for (Value* v : arg.values) {
      if (v->is_inline_constant()) v = MOKA_TRY(builder.constant(arg.name, *v->constant()));
      inputs.push_back(v);
      names.push_back(arg.name);
    }
    return {};
  }

  Status add_weight(const NamedArg& arg) {
    const Constant* c = constant_of(arg);
    if (c == nullptr || !c->type.is_tensor())
      return fail(ErrorCode::malformed, "parameter '", arg.name, "' is a weight: expected a constant tensor");
    weights.push_back(c->tensor);
    return {};
  }
};

struct Order {
  std::vector<std::string> inputs, weights, parameters;
};

Result<Sorted> sort(Builder& builder, const OpSpec& spec, const Order& order) {
  Sorted out;
  std::map<std::string_view, const NamedArg*> args;  // MIL text may have them in any order
  for (const NamedArg& arg : spec.args)
    if (!args.emplace(arg.name, &arg).second)
      return fail(ErrorCode::malformed, "parameter '", arg.name, "' is given twice");
  for (const std::string& name : order.inputs)
    if (const auto it = args.find(name); it != args.end()) MOKA_TRY(out.add_input(builder, *it->second));
  for (const std::string& name : order.weights) {
    const auto it = args.find(name);
    if (it == args.end()) return fail(ErrorCode::malformed, "weight '", name, "': expected a value, got none");
    MOKA_TRY(out.add_weight(*it->second));
  }
  const auto in = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& [name, arg] : args) {
    if (in(order.inputs, name) || in(order.weights, name)) continue;
    if (const Constant* c = constant_of(*arg))
      out.parameters.emplace(name, *c);
    else if (order.inputs.empty())
      MOKA_TRY(out.add_input(builder, *arg));
    else
      return fail(ErrorCode::unsupported, "parameter '", name,
                  "' is computed, but it is not among the inputs that the registered class takes");
  }
  return out;
}

/// `inputs`: of the moka_registered that the operation becomes.
std::shared_ptr<const RegisteredSource> source_of(const OpSpec& spec, const std::vector<Value*>& inputs) {
  auto out = std::make_shared<RegisteredSource>();
  out->op = spec.op;
  for (const NamedArg& arg : spec.args) {
    RegisteredSource::Argument& to = out->arguments.emplace_back(RegisteredSource::Argument{arg.name, arg.tuple, {}});
    if (arg.constant) to.values.emplace_back(*arg.constant);
    for (const Value* v : arg.values) {
      const auto at = std::find(inputs.begin(), inputs.end(), v);
      if (at != inputs.end())
        to.values.emplace_back(static_cast<size_t>(at - inputs.begin()));
      else
        to.values.emplace_back(*v->constant());  // what is computed is an input
    }
  }
  return out;
}

class Placeholder : public Registered {
 public:
  Placeholder(std::string what, std::vector<Type> types) : what_(std::move(what)), types_(std::move(types)) {}
  const std::string& what() const override { return what_; }
  Result<std::vector<Type>> infer(std::span<const Arg>, std::span<const Type>) const override { return types_; }
  Result<RegisteredPlan> plan(std::span<const Type>, std::span<const Type>, int) const override { return refused(); }
  Status run(const RegisteredCall&) const override { return refused(); }

 private:
  Error refused() const { return fail(ErrorCode::unsupported, what_, ": a placeholder, which does not run"); }
  std::string what_;
  std::vector<Type> types_;
};

}  // namespace

std::shared_ptr<const Registered> placeholder(std::string what, std::vector<Type> types) {
  return std::make_shared<Placeholder>(std::move(what), std::move(types));
}

std::string register_hint(std::string_view function) {
  return cat("no implementation of it is registered (", function, " in C++, C or Python, or moka --plugin)");
}

OpSpec registered_spec(std::shared_ptr<const Registered> instance, std::string class_name, std::vector<Value*> inputs,
                       std::shared_ptr<const RegisteredSource> source) {
  OpSpec spec;
  spec.op = "moka_registered";
  spec.args.emplace_back("inputs", std::move(inputs));
  spec.args.emplace_back("instance", registered_handle(std::move(instance), std::move(source)));
  spec.args.emplace_back("name", std::move(class_name));
  return spec;
}

Result<std::optional<OpSpec>> registered_operation(Builder& builder, const OpSpec& spec,
                                                   const std::map<std::string, Constant>& attributes,
                                                   bool placeholders) {
  RegisteredSpec said;
  Order order;
  std::shared_ptr<const RegisteredClass> entry;
  if (spec.op == kCustomLayer) {
    said.class_name = MOKA_TRY(text_attribute(attributes, "class_name"));
    said.description = MOKA_TRY(text_attribute(attributes, "description"));
    order.inputs = MOKA_TRY(names_attribute(attributes, "input_order"));
    order.weights = MOKA_TRY(names_attribute(attributes, "weights"));
    if (!placeholders) {
      entry = registered_class(RegisteredKind::layer, said.class_name);
      if (entry == nullptr) entry = registered_class(RegisteredKind::operation, said.class_name);
    }
    if (entry == nullptr && !placeholders)
      return fail(ErrorCode::unsupported, "custom layer '", said.class_name, "'",
                  said.description.empty() ? "" : cat(" (", said.description, ")"), ": ",
                  register_hint("register_layer"));
  } else {
    said.class_name = std::string(spec.op);
    entry = registered_class(RegisteredKind::operation, said.class_name);
    if (entry == nullptr) return std::optional<OpSpec>();
    order.inputs = entry->inputs;
    order.weights = entry->weights;
  }
  Sorted sorted = MOKA_TRY_IN(sort(builder, spec, order), cat("operation '", spec.name, "' (", spec.op, ")"));
  for (const auto& [key, value] : attributes)
    if (spec.op != kCustomLayer) sorted.parameters.emplace(key, value);
  said.name = !spec.name.empty() ? spec.name : spec.output_names.empty() ? said.class_name : spec.output_names[0];
  said.parameters = std::move(sorted.parameters);
  said.weights = std::move(sorted.weights);
  said.inputs = std::move(sorted.names);
  said.input_count = sorted.inputs.size();
  said.output_count = spec.output_names.size();
  said.declared = spec.declared;
  const std::string class_name = said.class_name;
  auto source = source_of(spec, sorted.inputs);
  std::shared_ptr<const Registered> instance = entry == nullptr
                                                   ? placeholder(cat("custom layer '", class_name, "'"), spec.declared)
                                                   : MOKA_TRY(entry->make(std::move(said)));
  OpSpec out = registered_spec(std::move(instance), class_name, std::move(sorted.inputs), std::move(source));
  out.name = spec.name;
  out.output_names = spec.output_names;
  out.declared = spec.declared;
  out.other_float_allowed = true;
  return std::optional<OpSpec>(std::move(out));
}

}  // namespace moka::ir
