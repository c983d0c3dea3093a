// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/interface.h"

#include <tuple>
#include <utility>

#include "import/onnx/classifier.h"

namespace moka::import::onnx {

void Interface::check_options(std::span<const format::onnx::ValueInfo> inputs) const {
  using Kind = format::onnx::Type::Kind;
  const auto refuse_unless = [&](const std::string& name, std::string_view what, const auto& fits) {
    std::string all;
    for (const format::onnx::ValueInfo& input : inputs) {
      if (!fits(input.type)) continue;
      if (input.name == name) return;
      all += cat(all.empty() ? "" : ", ", "'", input.name, "'");
    }
    refuse(ErrorCode::invalid_argument, "'", name, "': expected ", what, " (", all.empty() ? "the model has none" : all,
           ")");
  };
  for (const auto& [name, length] : context_.options.lengths)
    refuse_unless(name, "the name of an input that is a sequence", [](const format::onnx::Type& type) {
      return type.kind == Kind::sequence ||
             (type.kind == Kind::optional && type.inner != nullptr && type.inner->kind == Kind::sequence);
    });
  for (const std::string& name : context_.options.absent)
    refuse_unless(name, "the name of an optional input",
                  [](const format::onnx::Type& type) { return type.kind == Kind::optional; });
}

void Interface::add_input(const format::onnx::ValueInfo& input) {
  scope_.add(input.name, input_item({input.name, input.name, {}}, input.type));
}

void Interface::add_outputs(std::span<const format::onnx::ValueInfo> outputs) {
  add_classifier(outputs);
  for (const format::onnx::ValueInfo& output : outputs) {
    Item& item = scope_.own(output.name);
    if (const auto it = classified_.find(output.name); it != classified_.end())
      add_result(output.name, output.name, std::nullopt, it->second, item.type);
    else
      add_output(output.name, output.name, std::nullopt, item);
  }
}

void Interface::add_classifier(std::span<const format::onnx::ValueInfo> outputs) {
  std::vector<Outcome> outcomes;
  for (const format::onnx::ValueInfo& output : outputs) outcomes.push_back({output.name, &scope_.own(output.name)});
  const auto found = find_classifier(scope_, outcomes);
  if (!found) return;
  for (const auto& [outcome, at, made] : {std::tuple(found->label, &out_.label, found->chosen),
                                          std::tuple(found->probabilities, &out_.probabilities, found->dictionary)}) {
    if (!outcome) continue;
    *at = *outcome;
    classified_[outputs[*outcome].name] = made;
  }
}

/// The shape of an input, with symbols for its flexible sizes.
Shape Interface::shape_of(const Place& at, const format::onnx::Type& type, std::vector<std::string>& names) {
  auto given = context_.options.shapes.find(at.name);
  if (given == context_.options.shapes.end()) given = context_.options.shapes.find(at.input);
  const bool is_given = given != context_.options.shapes.end();
  if (!type.shape) {
    if (!is_given) refuse(ErrorCode::unsupported, "input '", at.name, "': its rank is not known; give its shape");
    names.resize(given->second.size());
    return need(Shape::make(given->second));
  }
  std::vector<int64_t> dims;
  for (const format::onnx::Dimension& d : *type.shape) {
    const size_t i = dims.size();
    names.push_back(d.value ? "" : d.param);
    const auto fixed = context_.options.dimensions.find(d.param);
    if (is_given && i < given->second.size()) {
      dims.push_back(given->second[i]);
    } else if (d.value && *d.value >= 0) {
      dims.push_back(*d.value);
    } else if (!d.param.empty() && fixed != context_.options.dimensions.end()) {
      dims.push_back(fixed->second);
    } else if (d.param.empty()) {
      dims.push_back(context_.next_symbol--);
    } else {
      const auto [it, is_new] = symbols_.emplace(d.param, context_.next_symbol);
      if (is_new) --context_.next_symbol;
      dims.push_back(it->second);
    }
  }
  if (is_given && given->second.size() != dims.size())
    refuse(ErrorCode::invalid_argument, "input '", at.name, "': expected a shape of ", dims.size(), " sizes, got ",
           given->second.size());
  return need(Shape::make(dims));
}

Item Interface::input_item(const Place& at, const format::onnx::Type& type) {
  using Kind = format::onnx::Type::Kind;
  if (type.kind == Kind::optional && type.inner != nullptr) {
    if (!context_.options.absent.contains(at.input)) return input_item(at, *type.inner);
    Item none;
    none.is_absent = true;
    return none;
  }
  if (type.kind == Kind::sequence && type.inner != nullptr && !at.element) return sequence_item(at, *type.inner);
  if (type.kind == Kind::map)
    refuse(ErrorCode::unsupported, "input '", at.name, "': Core ML's programs take no dictionaries");
  if (type.kind == Kind::tensor && type.element == DataType::string)
    refuse(ErrorCode::unsupported, "input '", at.name, "': Core ML's programs take no strings");
  if (type.kind == Kind::tensor) return tensor_item(at, type);
  refuse(
      ErrorCode::unsupported, "input '", at.name,
      "': expected a tensor, a sequence of tensors, or an optional of them; Core ML's programs have no other inputs");
}

Item Interface::sequence_item(const Place& at, const format::onnx::Type& type) {
  constexpr int64_t most = 4096;
  const auto length = context_.options.lengths.find(at.input);
  if (length == context_.options.lengths.end())
    refuse(ErrorCode::unsupported, "input '", at.input,
           "': Core ML has no sequences; give its length, so that each element becomes an input");
  if (length->second < 0 || length->second > most)
    refuse(ErrorCode::invalid_argument, "input '", at.input, "': expected a length from 0 to ", most, ", got ",
           length->second);
  Item out{nullptr, {}, type.element, true, false, std::make_shared<std::vector<Item>>()};
  for (int64_t i = 0; i < length->second; ++i)
    out.elements->push_back(input_item({at.input, cat(at.input, "_", i), i}, type));
  return out;
}

Item Interface::tensor_item(const Place& at, const format::onnx::Type& type) {
  if (const auto given = context_.options.constants.find(at.name); given != context_.options.constants.end()) {
    const Tensor& t = given->second;
    const bool scalar = type.shape && type.shape->empty() && t.count() == 1;
    return Item{nullptr, scalar ? t.reshaped(Shape()) : t, type.element};
  }
  const DType computed = computed_as(type.element);
  const DType outside = computed == DType::boolean ? DType::int32 : computed;
  Feature feature{at.input, nullptr, type.element, {}, at.element};
  Shape shape = shape_of(at, type, feature.dimensions);
  const bool is_scalar = shape.rank() == 0;
  if (is_scalar) shape.push_back(1);
  ir::Function& f = scope_.builder.function();
  feature.value = f.body().add_input(f.unique_name(identifier(at.name)), ir::Type::tensor(outside, shape));
  Value* v = feature.value;
  if (is_scalar) v = need(scope_.builder.op("squeeze", {{"x", v}, {"axes", Tensor::i32({0})}}, v->name + "_scalar"));
  if (outside != computed) v = need(scope_.builder.op("cast", {{"x", v}, {"dtype", "bool"}}, v->name + "_bool"));
  if (type.element != DataType::float32 && type.element != DataType::float16 && type.element != DataType::int32)
    context_.remark(cat("input '", at.name, "' of type ", format::onnx::to_string(type.element), " is ", outside,
                        ", because Core ML has no such inputs"));
  out_.inputs.push_back(std::move(feature));
  return Item{v, {}, type.element};
}

void Interface::add_output(const std::string& output, const std::string& name, std::optional<int64_t> element,
                           Item& item) {
  if (item.is_absent) return context_.remark(cat("output '", name, "' has no value and is dropped"));
  if (item.is_sequence) {
    if (element) refuse(ErrorCode::unsupported, "output '", name, "': a sequence of sequences");
    const std::vector<Item>& all = *item.elements;
    if (all.empty()) context_.remark(cat("output '", name, "' is an empty sequence and is dropped"));
    for (size_t i = 0; i < all.size(); ++i) {
      Item one = all[i];
      add_output(output, cat(name, "_", i), static_cast<int64_t>(i), one);
    }
    return;
  }
  add_result(output, name, element, scope_.value(item, name), item.type);
}

void Interface::add_result(const std::string& output, const std::string& name, std::optional<int64_t> element, Value* v,
                           DataType type) {
  if (named_.empty()) find_names(scope_.builder.function().body());
  named_[v->name] = v;
  if (classified_.contains(output)) {
    give_name(v, identifier(name));
    kept_.insert(v);
    out_.outputs.push_back({output, v, type, {}, element});
    return;
  }
  if (v->type.dtype() == DType::boolean) v = converted("cast", {{"x", v}, {"dtype", "int32"}});
  if (v->type.is_ranked() && v->type.rank() == 0) v = converted("expand_dims", {{"x", v}, {"axes", Tensor::i32({0})}});
  if (kept_.contains(v) || v->producer() == nullptr || v->constant() != nullptr) v = converted("identity", {{"x", v}});
  give_name(v, identifier(name));
  kept_.insert(v);
  out_.outputs.push_back({output, v, type, {}, element});
}

/// The result of an operation between a value of the graph and an output.
Value* Interface::converted(std::string_view op, std::vector<NamedArg> args) {
  Value* v = need(scope_.builder.op(op, std::move(args), std::string(op)));
  named_[v->name] = v;
  return v;
}

void Interface::find_names(const ir::Block& block) {
  for (const auto& v : block.inputs()) {
    named_[v->name] = v.get();
    if (block.parent_op() == nullptr) kept_.insert(v.get());
  }
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->output_count(); ++i) named_[op->output(i)->name] = op->output(i);
    for (size_t i = 0; i < op->block_count(); ++i) find_names(*op->block(i));
  }
}

/// A value inside the graph that has the name takes the one of v. Inputs and other outputs keep theirs.
void Interface::give_name(Value* v, const std::string& wanted) {
  if (v->name == wanted) return;
  ir::Function& f = scope_.builder.function();
  const auto found = named_.find(wanted);
  Value* holder = found != named_.end() ? found->second : nullptr;
  const bool is_kept = kept_.contains(holder);
  std::string unused = f.unique_name(wanted);
  const std::string given = is_kept ? std::move(unused) : wanted;
  const std::string left = std::exchange(v->name, given);
  named_.erase(left);
  named_[given] = v;
  if (holder == nullptr || is_kept) return;
  holder->name = left;
  named_[left] = holder;
}

}  // namespace moka::import::onnx
