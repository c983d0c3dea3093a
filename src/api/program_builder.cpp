// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/internal.h"
#include "api/program_arguments.h"
#include "api/program_impl.h"
#include "ir/text_printer.h"

namespace moka {

using api::unwrap;

namespace {

[[noreturn]] void refuse(const std::string& what) { throw Exception(ErrorKind::invalid_argument, what); }

ir::Opset opset_of(const std::string& name) {
  const auto opset = ir::opset_from_string(name);
  if (!opset) refuse(cat("opset: expected ios15 to ios26, got '", name, "'"));
  return *opset;
}

/// -1 where a described size is flexible.
ir::Shape shape_of(const FeatureDescription& f) {
  const MultiArrayConstraint& a = f.array;
  std::vector<int64_t> dims = a.shape;
  for (size_t i = 0; i < a.ranges.size(); ++i) {
    if (a.ranges.size() != dims.size())
      refuse(cat("feature '", f.name, "': expected a range for each of ", dims.size(), " dimensions, got ",
                 a.ranges.size()));
    if (a.ranges[i].lower != a.ranges[i].upper) dims[i] = -1;
  }
  for (const auto& shape : a.enumerated) {
    if (shape.size() != dims.size())
      refuse(cat("feature '", f.name, "': expected shapes of ", dims.size(), " dimensions, got ", shape.size()));
    for (size_t i = 0; i < dims.size(); ++i)
      if (shape[i] != a.shape[i]) dims[i] = -1;
  }
  return unwrap(ir::Shape::make(dims));
}

int64_t channels_of(ColorSpace color) { return color == ColorSpace::rgb || color == ColorSpace::bgr ? 3 : 1; }

ir::Type type_of(const FeatureDescription& f) {
  if (f.type == FeatureType::multi_array) return ir::Type::tensor(api::to_ir(f.array.type), shape_of(f));
  if (f.type != FeatureType::image)
    refuse(cat("feature '", f.name, "': expected an array or an image as an input of a program, got ",
               f.formatted_type()));
  const ImageConstraint& image = f.image;
  bool fixed_width = !image.width_range, fixed_height = !image.height_range;
  for (const auto& [width, height] : image.enumerated) {
    fixed_width &= width == image.width;
    fixed_height &= height == image.height;
  }
  const ir::DType type = image.color == ColorSpace::grayscale_float16 ? ir::DType::fp16 : ir::DType::fp32;
  return ir::Type::tensor(
      type, ir::Shape{1, channels_of(image.color), fixed_height ? image.height : -1, fixed_width ? image.width : -1});
}

FeatureDescription array_feature(const std::string& name, DataType type, const std::vector<int64_t>& shape) {
  FeatureDescription f;
  f.name = name;
  f.array.type = type;
  const bool flexible = std::find(shape.begin(), shape.end(), -1) != shape.end();
  for (int64_t d : shape) {
    if (d < -1) refuse(cat("input '", name, "': expected dimensions of 0 or more, or -1 for any size, got ", d));
    f.array.shape.push_back(d < 0 ? 1 : d);
    if (flexible) f.array.ranges.push_back({d < 0 ? 1 : d, d});
  }
  return f;
}

}  // namespace

ProgramBuilder::Impl::Part& ProgramBuilder::Impl::part() {
  if (parts.empty()) add("main");
  return parts.back();
}

void ProgramBuilder::Impl::add(const std::string& name) {
  program.functions.push_back(std::make_unique<ir::Function>(name, opset));
  ir::Function* f = program.functions.back().get();
  parts.push_back({f, std::make_unique<ir::Builder>(ops::table(), f->body()), {}, {}});
  parts.back().described.name = name;
}

ir::Value* ProgramBuilder::Impl::add_input(const std::string& name, ir::Type type) {
  ir::Function& f = *part().function;
  const std::string unique = f.unique_name(name);
  if (unique != name) refuse(cat("input '", name, "': the function has another value of this name"));
  return f.body().add_input(name, std::move(type));
}

ProgramBuilder::ProgramBuilder(const std::string& opset) : impl_(std::make_unique<Impl>(opset_of(opset))) {}
ProgramBuilder::ProgramBuilder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ProgramBuilder::~ProgramBuilder() = default;
ProgramBuilder::ProgramBuilder(ProgramBuilder&&) noexcept = default;

void ProgramBuilder::function(const std::string& name) {
  if (name.empty()) refuse("function: expected a name, got an empty text");
  if (impl_->program.find(name) != nullptr) refuse(cat("function '", name, "': exists already"));
  impl_->add(name);
  impl_->described |= name != "main" || impl_->parts.size() > 1;
}

ProgramBuilder::Value ProgramBuilder::input(const std::string& name, DataType type, const std::vector<int64_t>& shape) {
  FeatureDescription f = array_feature(name, type, shape);
  ir::Value* v = impl_->add_input(name, ir::Type::tensor(api::to_ir(type), unwrap(ir::Shape::make(shape))));
  impl_->part().described.inputs.push_back(std::move(f));
  return {v};
}

ProgramBuilder::Value ProgramBuilder::input(const FeatureDescription& feature) {
  ir::Value* v = impl_->add_input(feature.name, moka::type_of(feature));
  impl_->part().described.inputs.push_back(feature);
  impl_->described = true;
  return {v};
}

ProgramBuilder::Value ProgramBuilder::state(const std::string& name, DataType type, const std::vector<int64_t>& shape) {
  FeatureDescription f = array_feature(name, type, shape);
  if (!f.array.ranges.empty()) refuse(cat("state '", name, "': expected known sizes, got -1"));
  if (impl_->opset < ir::Opset::ios18)
    refuse(cat("state '", name, "': expected opset ios18 or later, got ", to_string(impl_->opset)));
  f.type = FeatureType::state;
  const ir::Type wrapped = ir::Type::tensor(api::to_ir(type), unwrap(ir::Shape::make(shape)));
  ir::Value* v = impl_->add_input(name, ir::Type::state(wrapped));
  impl_->part().described.states.push_back(std::move(f));
  impl_->described = true;
  return {v};
}

ProgramBuilder::Value ProgramBuilder::constant(const MultiArray& values, const std::string& element_type,
                                               const std::string& name) {
  const ir::DType type = element_type.empty() ? api::to_ir(values.type()) : ir::dtype_from_string(element_type);
  if (type == ir::DType::none || type == ir::DType::string)
    refuse(
        cat("constant '", name, "': expected an element type of MIL such as fp16 or uint4, got '", element_type, "'"));
  ir::Builder& builder = impl_->builder();
  return {unwrap(
      builder.constant(builder.function().unique_name(name.empty() ? "const" : name), api::tensor_of(values, type)))};
}

std::vector<ProgramBuilder::Value> ProgramBuilder::control(const std::string& type, std::vector<Argument> arguments,
                                                           const std::vector<Block>& blocks, const std::string& name) {
  ir::Builder& builder = impl_->builder();
  ir::OpSpec spec{type, {}, name, {}, {}};
  const ir::OpVersion* version = unwrap(ops::table().resolve(type, builder.opset));
  for (const Argument& a : arguments) spec.args.push_back(api::to_named(*version, a, arguments, builder.block()));
  std::vector<std::vector<std::pair<std::string, ir::Type>>> inputs(blocks.size());
  for (const Argument& a : arguments)
    if (const auto* vars = std::get_if<std::vector<Value>>(&a.value); vars != nullptr && a.name == "loop_vars")
      for (auto& list : inputs)
        for (Value v : *vars) list.emplace_back(api::handle(v)->name, api::handle(v)->type);
  ir::Op* op = nullptr;
  if (blocks.empty()) {
    op = api::built(builder.append(std::move(spec)));
  } else {
    const ir::Builder::BlockFn fill = [&](size_t i, ir::Builder& inner) -> Result<std::vector<ir::Value*>> {
      impl_->nested.push_back(&inner);
      struct Leave {
        std::vector<ir::Builder*>& nested;
        ~Leave() { nested.pop_back(); }
      } leave{impl_->nested};
      std::vector<Value> block_inputs;
      for (const auto& v : inner.block().inputs()) block_inputs.push_back({v.get()});
      std::vector<ir::Value*> out;
      for (Value v : blocks[i](block_inputs)) out.push_back(api::visible(v, inner.block()));
      return out;
    };
    op = api::built(builder.append_with_blocks(std::move(spec), inputs, fill));
  }
  std::vector<Value> out;
  for (size_t i = 0; i < op->output_count(); i++) out.push_back({op->output(i)});
  return out;
}

std::vector<ProgramBuilder::Value> ProgramBuilder::ops(const std::string& type, std::vector<Argument> arguments,
                                                       const std::string& name) {
  return control(type, std::move(arguments), {}, name);
}

ProgramBuilder::Value ProgramBuilder::op(const std::string& type, std::vector<Argument> arguments,
                                         const std::string& name) {
  auto out = ops(type, std::move(arguments), name);
  if (out.size() != 1) refuse(cat("operation ", type, " has ", out.size(), " outputs: use ops"));
  return out[0];
}

ir::Value* ProgramBuilder::Impl::add_output(Value value, const std::string& name, FeatureDescription f) {
  Part& p = part();
  ir::Value* v = api::visible(value, p.function->body());
  const bool renamed = !name.empty() && name != v->name;
  const bool taken = std::find(p.outputs.begin(), p.outputs.end(), v) != p.outputs.end();
  if (taken && !renamed) refuse(cat("output '", v->name, "': is an output already"));
  if (renamed) {
    if (p.function->unique_name(name) != name)
      refuse(cat("output '", name, "': the function has another value of this name"));
    if (taken || v->producer() == nullptr || v->producer()->has_trait(ir::Trait::constant))
      v = api::built(p.builder->append({"identity", {{"x", v}}, name, {}, {}}))->output();
    v->name = name;
  }
  f.name = v->name;
  p.outputs.push_back(v);
  p.described.outputs.push_back(std::move(f));
  p.function->body().set_outputs(p.outputs);
  return v;
}

void ProgramBuilder::output(Value value, const std::string& name) {
  impl_->add_output(value, name, api::output_feature(api::handle(value)->type));
}

void ProgramBuilder::image_output(Value value, ColorSpace color, const std::string& name) {
  const ir::Type& type = api::handle(value)->type;
  const int64_t channels = channels_of(color);
  const bool fits = type.is_concrete() && type.is_tensor() && type.rank() == 4 && type.shape()[0] == 1 &&
                    type.shape()[1] == channels && ir::is_float(type.dtype());
  if (!fits)
    refuse(cat("image '", name, "': expected numbers of shape [1, ", channels, ", height, width], got ", type));
  FeatureDescription f;
  f.type = FeatureType::image;
  f.image = {type.shape()[3], type.shape()[2], color};
  impl_->add_output(value, name, std::move(f));
  impl_->described = true;
}

void ProgramBuilder::Impl::add_classifier(Value probabilities, std::vector<ir::Constant> labels,
                                          const std::string& label, const std::string& probabilities_name) {
  const bool strings = labels.empty() || labels[0].type.dtype() == ir::DType::string;
  const ir::Type element = ir::Type::scalar(strings ? ir::DType::string : ir::DType::int64);
  const auto count = static_cast<int64_t>(labels.size());
  ir::Constant list(ir::Type::list(element, count), std::move(labels));
  Part& p = part();
  for (const std::string& name : {label, probabilities_name})
    if (ir::Function& f = *p.function; f.unique_name(name) != name)
      refuse(cat("classify: the function has another value of the name '", name, "'"));
  ir::OpSpec spec{"classify",
                  {{"probabilities", api::visible(probabilities, p.function->body())}, {"classes", std::move(list)}},
                  "classify"};
  ir::Op* op = api::built(p.builder->append(std::move(spec)));
  op->output(0)->name = label;
  op->output(1)->name = probabilities_name;
  FeatureDescription name, dictionary;
  name.type = strings ? FeatureType::string : FeatureType::int64;
  dictionary.type = FeatureType::dictionary;
  dictionary.string_keys = strings;
  add_output({op->output(0)}, {}, std::move(name));
  add_output({op->output(1)}, {}, std::move(dictionary));
  p.described.predicted_feature_name = label;
  p.described.predicted_probabilities_name = probabilities_name;
  described = true;
}

void ProgramBuilder::classify(Value probabilities, const std::vector<std::string>& labels, const std::string& label,
                              const std::string& probabilities_name) {
  std::vector<ir::Constant> list;
  for (const std::string& l : labels) list.emplace_back(ir::Tensor::text(l));
  impl_->add_classifier(probabilities, std::move(list), label, probabilities_name);
}

void ProgramBuilder::classify(Value probabilities, const std::vector<int64_t>& labels, const std::string& label,
                              const std::string& probabilities_name) {
  std::vector<ir::Constant> list;
  for (int64_t l : labels) list.emplace_back(ir::Tensor::scalar_i64(ir::DType::int64, l));
  impl_->add_classifier(probabilities, std::move(list), label, probabilities_name);
}

void ProgramBuilder::metadata(const ModelDescription& texts) {
  impl_->texts = texts;
  impl_->described = true;
}

std::string ProgramBuilder::type_of(Value value) { return cat(api::handle(value)->type); }
std::string ProgramBuilder::name_of(Value value) { return api::handle(value)->name; }
std::string ProgramBuilder::mil() const { return ir::print_text(impl_->program); }
void ProgramBuilder::save(const std::filesystem::path& path, Overwrite overwrite) const {
  source().save(path, overwrite);
}

Model ProgramBuilder::build(const ModelConfiguration& configuration) {
  impl_->check_outputs();
  // Both copy the arrays that the program refers to.
  Model model = impl_->described ? source().load(configuration) : Model::from_mil(mil(), configuration);
  impl_ = std::make_unique<Impl>(impl_->opset);
  return model;
}

}  // namespace moka
