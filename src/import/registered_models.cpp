// SPDX-License-Identifier: Apache-2.0
#include "import/registered_models.h"

#include <algorithm>
#include <mutex>

#include "format/model_file.h"
#include "format/proto/model.pb.h"
#include "import/model_type.h"

namespace moka::import {

namespace {

using ir::NamedArg;
using ir::Tensor;
using ir::Type;
using ir::Value;

/// Never freed: programs may outlive static objects.
struct Models {
  std::mutex mutex;
  RegisteredModels all;
  std::vector<std::string> folders;
};
Models& models() {
  static auto& all = *new Models;
  return all;
}

bool is_numbers(const Type& t) { return t.is_tensor() && t.dtype() != ir::DType::string; }

/// The planes of an image in another order of colors.
Result<Value*> fit_colors(const FeatureDescription& from, const FeatureDescription& to, Value* v, ir::Builder& builder,
                          const std::string& name) {
  const auto gray = [](ColorSpace c) { return c == ColorSpace::grayscale || c == ColorSpace::grayscale_float16; };
  if (gray(from.image.color) != gray(to.image.color))
    return fail(ErrorCode::unsupported, "expected colors, or none, as the image '", from.name, "' has");
  if (gray(from.image.color) || from.image.color == to.image.color) return v;
  return builder.op("reverse", {{"x", v}, {"axes", ir::Ints{1}}}, name);
}

/// A value with the element type and shape that are wanted.
Result<Value*> fit(Value* v, const Type& wanted, ir::Builder& builder, const std::string& name) {
  if (!is_numbers(wanted) || !is_numbers(v->type)) {
    if (!ir::is_compatible(v->type, wanted))
      return fail(ErrorCode::unsupported, "expected ", wanted, ", got ", v->type);
    return v;
  }
  const bool known = wanted.is_ranked() && wanted.is_concrete() && v->type.is_ranked() && v->type.is_concrete();
  if (known && wanted.shape().count() != v->type.shape().count())
    return fail(ErrorCode::unsupported, "expected ", wanted.shape().count(), " elements (", wanted, "), got ",
                v->type.shape().count(), " (", v->type, ")");
  const bool reshape = known && !(wanted.shape() == v->type.shape());
  if (!reshape && wanted.dtype() == v->type.dtype()) return v;
  std::vector<NamedArg> args{{"x", v}, {"dtype", std::string(to_string(wanted.dtype()))}};
  if (reshape) args.emplace_back("shape", Tensor::i32(wanted.shape().dims()));
  return builder.op("ml_convert", std::move(args), name);
}

/// The one of `of` that stands for number i of `all`: that of the same name, else that of the same number.
const FeatureDescription* same(const std::vector<FeatureDescription>& all, size_t i,
                               const std::vector<FeatureDescription>& of) {
  for (const FeatureDescription& f : of)
    if (f.name == all[i].name) return &f;
  return all.size() == of.size() ? &of[i] : nullptr;
}

/// The values of the inputs, and in `given` their descriptions. Optional inputs may be missing.
Result<std::vector<Value*>> inputs_of(const FunctionDescription& function, const Features& features,
                                      std::vector<FeatureDescription>& given) {
  std::vector<Value*> out;
  for (const FeatureDescription& f : function.inputs) {
    const auto it = features.find(f.name);
    if (it == features.end()) {
      if (f.optional) continue;
      return fail(ErrorCode::not_found, "input '", f.name, "' has no value");
    }
    out.push_back(it->second);
    given.push_back(f);
  }
  return out;
}

/// The operation of an instance, whose outputs are those of the function.
Status append(std::shared_ptr<const ir::Registered> instance, const std::string& name, std::vector<Value*> inputs,
              const FunctionDescription& function, const ImportContext& context, ir::Builder& builder,
              Features& features) {
  ir::OpSpec op = ir::registered_spec(std::move(instance), name, std::move(inputs));
  op.name = context.prefix + name;
  const ir::Op* made = MOKA_TRY(builder.append(std::move(op)));
  for (size_t i = 0; i < function.outputs.size(); i++) features[function.outputs[i].name] = made->output(i);
  return {};
}

}  // namespace

void register_model(const std::string& name, RegisteredModel entry) {
  auto made = std::make_shared<const RegisteredModel>(std::move(entry));
  std::shared_ptr<const RegisteredModel> before;  // its destructor may call other code: not under the lock
  const std::lock_guard lock(models().mutex);
  auto& place = models().all[name];
  before = std::exchange(place, std::move(made));
}

bool unregister_model(std::string_view name) {
  std::shared_ptr<const RegisteredModel> before;
  const std::lock_guard lock(models().mutex);
  const auto it = models().all.find(name);
  if (it == models().all.end()) return false;
  before = std::move(it->second);
  models().all.erase(it);
  return true;
}

std::shared_ptr<const RegisteredModel> registered_model(std::string_view name) {
  const std::lock_guard lock(models().mutex);
  const auto it = models().all.find(name);
  return it == models().all.end() ? nullptr : it->second;
}

RegisteredModels registered_models() {
  const std::lock_guard lock(models().mutex);
  return models().all;
}

void set_registered_models(RegisteredModels all) {
  const std::lock_guard lock(models().mutex);
  models().all.swap(all);  // the destructors of the former ones may call other code: not under the lock
}

std::vector<std::string> registered_model_names() {
  const std::lock_guard lock(models().mutex);
  std::vector<std::string> out;
  for (const auto& [name, entry] : models().all) out.push_back(name);
  return out;
}

void set_linked_folders(std::vector<std::string> folders) {
  const std::lock_guard lock(models().mutex);
  models().folders = std::move(folders);
}

std::vector<std::string> linked_folders() {
  const std::lock_guard lock(models().mutex);
  return models().folders;
}

std::string_view needs_of(int type) {
  switch (type) {
    case proto::Model::kCustomModel: return "a registered class";
    case proto::Model::kLinkedModel: return "a folder that you allow";
    case proto::Model::kTextClassifier:
    case proto::Model::kWordTagger:
    case proto::Model::kGazetteer:
    case proto::Model::kWordEmbedding:
    case proto::Model::kVisionFeaturePrint:
    case proto::Model::kAudioFeaturePrint: return "a registered model";
    default: return "";
  }
}

Result<FunctionDescription> function_of(const proto::Model& model, const ImportContext& context) {
  const ModelDescription d = MOKA_TRY(describe(model, context.file));
  const FunctionDescription* f = d.function(d.default_function);
  if (f == nullptr) return fail(ErrorCode::malformed, d.type_name, " model without inputs and outputs");
  return *f;
}

Status import_other(const format::ModelFile& file, const FunctionDescription& outer, const std::string& what,
                    const ImportContext& context, ir::Builder& builder, Features& features) {
  const proto::Model& model = file.spec();
  const ModelDescription d = MOKA_TRY_IN(describe(model, file), what);
  const FunctionDescription* inner = d.function(d.default_function);
  if (inner == nullptr) return fail(ErrorCode::malformed, what, ": it describes no inputs and outputs");
  const int type = model_type(model, file);
  const bool network = type == 303 || type == 403 || type == 500;
  const std::string prefix = context.prefix + "other_";
  Features local;
  for (size_t i = 0; i < inner->inputs.size(); i++) {
    const FeatureDescription& to = inner->inputs[i];
    const FeatureDescription* from = same(inner->inputs, i, outer.inputs);
    const auto it = from == nullptr ? features.end() : features.find(from->name);
    if (it == features.end()) {
      if (to.optional) continue;
      return fail(ErrorCode::unsupported, what, ": its input '", to.name, "' has no counterpart");
    }
    const std::string place = cat(what, ", input '", to.name, "'");
    Value* v = it->second;
    if (from->kind == FeatureKind::image && to.kind == FeatureKind::image)
      v = MOKA_TRY_IN(fit_colors(*from, to, v, builder, prefix + to.name), place);
    if (type != kMLProgram || from->kind != FeatureKind::image) {
      const Type wanted = MOKA_TRY_IN(boundary_type(to, !network), place);
      v = MOKA_TRY_IN(fit(v, wanted, builder, prefix + to.name), place);
    }
    local[to.name] = v;
  }
  const ImportContext inside{file, context.options, prefix, context.depth + 1};
  MOKA_TRY_IN(import_into(model, inside, builder, local), what);
  for (size_t i = 0; i < outer.outputs.size(); i++) {
    const FeatureDescription* from = same(outer.outputs, i, inner->outputs);
    const auto it = from == nullptr ? local.end() : local.find(from->name);
    if (it == local.end())
      return fail(ErrorCode::unsupported, what, ": it has no output for '", outer.outputs[i].name, "'");
    const std::string place = cat(what, ", output '", from->name, "'");
    const Type wanted = MOKA_TRY_IN(boundary_type(outer.outputs[i], true), place);
    features[outer.outputs[i].name] =
        MOKA_TRY_IN(fit(it->second, wanted, builder, prefix + outer.outputs[i].name + "_out"), place);
  }
  return {};
}

Status import_registered(const RegisteredModel& entry, CustomModelSpec spec, const ImportContext& context,
                         ir::Builder& builder, Features& features) {
  const FunctionDescription function = spec.function;
  const std::string name = spec.name;
  if (!entry.path.empty()) {
    const std::string what = cat("'", entry.path, "', registered as '", name, "'");
    const format::ModelFile file = MOKA_TRY_IN(format::open_model(entry.path, {context.options.budget}), what);
    return import_other(file, function, what, context, builder, features);
  }
  std::vector<FeatureDescription> given;
  std::vector<Value*> inputs = MOKA_TRY_IN(inputs_of(function, features, given), cat("custom model '", name, "'"));
  if (function.outputs.empty()) return fail(ErrorCode::malformed, "custom model '", name, "' without outputs");
  spec.function.inputs = std::move(given);
  return append(MOKA_TRY(entry.make(std::move(spec))), name, std::move(inputs), function, context, builder, features);
}

Status import_placeholder(const proto::Model& model, const std::string& what, const ImportContext& context,
                          ir::Builder& builder, Features& features) {
  const FunctionDescription function = MOKA_TRY(function_of(model, context));
  std::vector<FeatureDescription> given;
  std::vector<Value*> inputs = MOKA_TRY_IN(inputs_of(function, features, given), what);
  if (function.outputs.empty()) return fail(ErrorCode::malformed, what, " without outputs");
  std::vector<Type> types;
  for (const FeatureDescription& f : function.outputs)
    types.push_back(MOKA_TRY_IN(boundary_type(f, true), cat(what, ", output '", f.name, "'")));
  return append(ir::placeholder(what, std::move(types)), what, std::move(inputs), function, context, builder, features);
}

}  // namespace moka::import
