// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "api/c_support.h"

using namespace moka::api;
using moka::cat;

namespace {

using Described = moka_description::Feature;

moka_size_range c_range(const moka::SizeRange& r) { return {r.lower, r.upper}; }

Described c_feature(const moka::FeatureDescription& d) {
  Described f{&d, d.formatted_type(), {}, {}, {}, pointers(d.categories)};
  for (const moka::SizeRange& r : d.array.ranges) f.ranges.push_back(c_range(r));
  for (const auto& shape : d.array.enumerated) f.shapes.push_back({shape.size(), shape.data()});
  for (const auto& [width, height] : d.image.enumerated) f.image_sizes.push_back({width, height});
  return f;
}

moka_feature_info info_of(const Described& f) {
  const moka::FeatureDescription& d = *f.of;
  moka_feature_info i{};
  i.name = d.name.c_str();
  i.description = d.description.c_str();
  i.type_text = f.type_text.c_str();
  i.type = static_cast<moka_feature_type>(d.type);
  i.optional = d.optional;
  i.data_type = static_cast<moka_data_type>(d.array.type);
  i.rank = d.array.shape.size();
  i.shape = d.array.shape.data();
  i.range_count = f.ranges.size();
  i.ranges = f.ranges.data();
  i.width = d.image.width;
  i.height = d.image.height;
  i.is_gray = d.image.color == moka::ColorSpace::grayscale || d.image.color == moka::ColorSpace::grayscale_float16;
  i.string_keys = d.string_keys;
  return i;
}

moka_feature_constraints constraints_of(const Described& f) {
  const moka::FeatureDescription& d = *f.of;
  const auto sizes = [](const std::optional<moka::SizeRange>& range, int64_t size) {
    return range ? c_range(*range) : moka_size_range{size, size};
  };
  moka_feature_constraints c = MOKA_FEATURE_CONSTRAINTS_INIT;
  c.shape_count = f.shapes.size();
  c.shapes = f.shapes.data();
  c.color_space = static_cast<moka_color_space>(d.image.color);
  c.image_size_count = f.image_sizes.size();
  c.image_sizes = f.image_sizes.data();
  c.width_range = sizes(d.image.width_range, d.image.width);
  c.height_range = sizes(d.image.height_range, d.image.height);
  c.sequence_length = c_range(d.sequence_length);
  c.has_default_value = d.default_value ? 1 : 0;
  c.default_value = d.default_value.value_or(0);
  c.category_count = f.categories.size();
  c.categories = f.categories.data();
  c.has_index_range = d.index_range ? 1 : 0;
  if (d.index_range) c.index_range = c_range(*d.index_range);
  return c;
}

/// The feature at an index. Throws not_found (the function), invalid_argument.
const Described& feature_at(const moka_description* description, const char* function, moka_role role, size_t index) {
  const moka_description& d = need(description, "description");
  enumerator<int>(role, MOKA_TRAINING_INPUT + 1, "role");
  const std::vector<Described>* features = d.features(function, role);
  if (features == nullptr)
    throw moka::Exception(moka::ErrorKind::not_found,
                          function == nullptr ? std::string("the model has no function")
                                              : cat("function '", function, "': not a function of the model"));
  check_index(index, features->size(), "feature");
  return (*features)[index];
}

const moka_description* description_of_model(const moka_model* model) {
  return model == nullptr ? nullptr : model->description.get();
}

}  // namespace

moka_description::moka_description(moka::ModelDescription described) : file(std::move(described)), of(file) {
  add_rest(of.default_function);
}

moka_description::moka_description(const moka::ModelDescription& model, const moka::FunctionDescription& loaded)
    : of(model) {
  // It has more than the same function in the model's description: what loading found out.
  functions.reserve(of.functions.size() + 1);
  bool is_listed = false;
  for (const auto& f : of.functions) {
    add(f.name == loaded.name ? loaded : f);
    is_listed |= f.name == loaded.name;
  }
  if (!is_listed) add(loaded);
  add_rest(loaded.name);
}

void moka_description::add(const moka::FunctionDescription& f) {
  const std::vector<moka::FeatureDescription>* lists[] = {&f.inputs, &f.outputs, &f.states};
  Function& to = functions.emplace_back(Function{&f, {}});
  for (int role = MOKA_INPUT; role <= MOKA_STATE; role++)
    for (const auto& d : *lists[role]) to.features[role].push_back(c_feature(d));
}

void moka_description::add_rest(const std::string& chosen_name) {
  if (functions.empty())
    for (const auto& f : of.functions) add(f);
  for (const Function& f : functions)
    if (f.of->name == chosen_name) chosen = &f;
  if (chosen == nullptr && !functions.empty()) chosen = &functions[0];
  if (of.update)
    for (const auto& d : of.update->training_inputs) training_inputs.push_back(c_feature(d));
  for (const auto& [key, value] : of.user_defined) metadata_keys.push_back(key.c_str());
}

const std::vector<Described>* moka_description::features(const char* function, moka_role role) const {
  if (role == MOKA_TRAINING_INPUT) return &training_inputs;
  if (function == nullptr) return chosen == nullptr ? nullptr : &chosen->features[role];
  for (const Function& f : functions)
    if (f.of->name == function) return &f.features[role];
  return nullptr;
}

extern "C" {

moka_status moka_describe(const char* path, moka_description** description) {
  return guarded([&] {
    need(description, "description");
    *description = new moka_description(moka::Model::describe(std::string(need_text(path, "path"))));
  });
}

void moka_description_free(moka_description* description) { delete description; }

const moka_description* moka_model_description(const moka_model* model) { return description_of_model(model); }

const char* moka_description_text(const moka_description* description, moka_text text) {
  if (description == nullptr) return nullptr;
  const moka::ModelDescription& d = description->of;
  const moka::FunctionDescription* f = description->chosen == nullptr ? nullptr : description->chosen->of;
  switch (text) {
    case MOKA_MODEL_TYPE: return d.type.c_str();
    case MOKA_FUNCTION_NAME: return f == nullptr ? "" : f->name.c_str();
    case MOKA_SHORT_DESCRIPTION: return d.short_description.c_str();
    case MOKA_AUTHOR: return d.author.c_str();
    case MOKA_LICENSE: return d.license.c_str();
    case MOKA_MODEL_VERSION: return d.version.c_str();
    case MOKA_PREDICTED_FEATURE_NAME: return f == nullptr ? "" : f->predicted_feature_name.c_str();
    case MOKA_PREDICTED_PROBABILITIES_NAME: return f == nullptr ? "" : f->predicted_probabilities_name.c_str();
    case MOKA_DEFAULT_FUNCTION_NAME: return d.default_function.c_str();
  }
  return "";
}

int moka_description_specification_version(const moka_description* description) {
  return description == nullptr ? 0 : description->of.specification_version;
}

int moka_description_is_updatable(const moka_description* description) {
  return description != nullptr && description->of.updatable ? 1 : 0;
}

size_t moka_description_metadata_count(const moka_description* description) {
  return description == nullptr ? 0 : description->metadata_keys.size();
}

const char* moka_description_metadata_key(const moka_description* description, size_t index) {
  return index < moka_description_metadata_count(description) ? description->metadata_keys[index] : nullptr;
}

const char* moka_description_metadata(const moka_description* description, const char* key) {
  if (description == nullptr || key == nullptr) return nullptr;
  for (const auto& [k, v] : description->of.user_defined)
    if (k == key) return v.c_str();
  return nullptr;
}

moka_feature_type moka_description_class_label_type(const moka_description* description) {
  if (description == nullptr || description->of.class_labels.empty()) return MOKA_TYPE_NONE;
  return description->of.int64_labels ? MOKA_TYPE_INT64 : MOKA_TYPE_STRING;
}

size_t moka_description_class_label_count(const moka_description* description) {
  return description == nullptr ? 0 : description->of.class_labels.size();
}

const char* moka_description_class_label(const moka_description* description, size_t index) {
  return index < moka_description_class_label_count(description) ? description->of.class_labels[index].c_str()
                                                                 : nullptr;
}

size_t moka_description_remark_count(const moka_description* description) {
  return description == nullptr ? 0 : description->of.remarks.size();
}

const char* moka_description_remark(const moka_description* description, size_t index) {
  return index < moka_description_remark_count(description) ? description->of.remarks[index].c_str() : nullptr;
}

size_t moka_description_function_count(const moka_description* description) {
  return description == nullptr ? 0 : description->functions.size();
}

const char* moka_description_function_name(const moka_description* description, size_t index) {
  return index < moka_description_function_count(description) ? description->functions[index].of->name.c_str()
                                                              : nullptr;
}

size_t moka_description_feature_count(const moka_description* description, const char* function, moka_role role) {
  if (description == nullptr || role < MOKA_INPUT || role > MOKA_TRAINING_INPUT) return 0;
  const auto* features = description->features(function, role);
  return features == nullptr ? 0 : features->size();
}

moka_status moka_description_feature(const moka_description* description, const char* function, moka_role role,
                                     size_t index, moka_feature_info* info) {
  return guarded([&] { need(info, "info") = info_of(feature_at(description, function, role, index)); });
}

moka_status moka_description_constraints(const moka_description* description, const char* function, moka_role role,
                                         size_t index, moka_feature_constraints* constraints) {
  return guarded(
      [&] { give(constraints, constraints_of(feature_at(description, function, role, index)), "constraints"); });
}

size_t moka_model_feature_count(const moka_model* model, moka_role role) {
  return moka_description_feature_count(description_of_model(model), nullptr, role);
}

moka_status moka_model_feature(const moka_model* model, moka_role role, size_t index, moka_feature_info* info) {
  return guarded([&] {
    need(model, "model");
    need(info, "info") = info_of(feature_at(description_of_model(model), nullptr, role, index));
  });
}

const char* moka_model_text(const moka_model* model, moka_text text) {
  return moka_description_text(description_of_model(model), text);
}

const char* moka_model_metadata(const moka_model* model, const char* key) {
  return moka_description_metadata(description_of_model(model), key);
}

size_t moka_model_class_label_count(const moka_model* model) {
  return moka_description_class_label_count(description_of_model(model));
}

const char* moka_model_class_label(const moka_model* model, size_t index) {
  return moka_description_class_label(description_of_model(model), index);
}

}  // extern "C"
