// SPDX-License-Identifier: Apache-2.0
#include "boundary/descriptions.h"

#include <cmath>

#include "import/update/update.h"
#include "moka/description.h"

namespace moka {

std::string_view to_string(FeatureType type) {
  switch (type) {
    case FeatureType::int64: return "Int64";
    case FeatureType::float64: return "Double";
    case FeatureType::string: return "String";
    case FeatureType::multi_array: return "MultiArray";
    case FeatureType::image: return "Image";
    case FeatureType::dictionary: return "Dictionary";
    case FeatureType::sequence: return "Sequence";
    case FeatureType::state: return "State";
  }
  return "?";
}

namespace boundary {

std::string_view core_ml_name(DataType t) {
  switch (t) {
    case DataType::float16: return "Float16";
    case DataType::float32: return "Float32";
    case DataType::float64: return "Double";
    case DataType::int32: return "Int32";
    case DataType::int8: return "Int8";
    default: return to_string(t);
  }
}

}  // namespace boundary

namespace {

std::string range_text(const SizeRange& r) {
  if (r.lower == r.upper) return cat(r.lower);
  return r.upper < 0 ? cat(r.lower, "..∞") : cat(r.lower, "..", r.upper);
}

std::string joined(const std::vector<int64_t>& shape) {
  std::string s;
  for (int64_t d : shape) s += cat(s.empty() ? "" : " x ", d);
  return s;
}

std::string array_text(const MultiArrayConstraint& a) {
  std::string s;
  if (!a.enumerated.empty()) {
    for (const auto& e : a.enumerated) s += cat(s.empty() ? "" : " | ", joined(e));
  } else if (!a.ranges.empty()) {
    for (const SizeRange& r : a.ranges) s += cat(s.empty() ? "" : " x ", range_text(r));
  } else {
    s = joined(a.shape);
  }
  return cat(boundary::core_ml_name(a.type), s.empty() ? "" : " ", s);
}

std::string image_text(const ImageConstraint& i) {
  std::string_view color = i.color == ColorSpace::rgb         ? "RGB"
                           : i.color == ColorSpace::bgr       ? "BGR"
                           : i.color == ColorSpace::grayscale ? "Grayscale"
                                                              : "Grayscale16Half";
  std::string size;
  for (const auto& [w, h] : i.enumerated) size += cat(size.empty() ? "" : " | ", w, " x ", h);
  if (size.empty())
    size = cat(i.width_range ? range_text(*i.width_range) : cat(i.width), " x ",
               i.height_range ? range_text(*i.height_range) : cat(i.height));
  return cat(color, " ", size);
}

}  // namespace

std::string FeatureDescription::formatted_type() const {
  switch (type) {
    case FeatureType::multi_array: return cat("MultiArray (", array_text(array), ")");
    case FeatureType::state: return cat("State (", array_text(array), ")");
    case FeatureType::image: return cat("Image (", image_text(image), ")");
    case FeatureType::dictionary: return string_keys ? "Dictionary (String -> Double)" : "Dictionary (Int64 -> Double)";
    case FeatureType::sequence: return string_keys ? "Sequence (String)" : "Sequence (Int64)";
    default: return std::string(to_string(type));
  }
}

const UpdateParameter* UpdateDescription::parameter(std::string_view name) const {
  for (const UpdateParameter& p : parameters)
    if (p.name == name) return &p;
  return nullptr;
}

std::string_view to_string(LossLayer::Kind kind) {
  return kind == LossLayer::Kind::mean_squared_error ? "meanSquaredError" : "categoricalCrossEntropy";
}

namespace boundary {

FeatureDescription to_public(const import::FeatureDescription& f) {
  FeatureDescription out;
  out.name = f.name;
  out.description = f.description;
  out.type = static_cast<FeatureType>(f.kind);
  out.optional = f.optional;
  if (f.threshold && !std::isnan(*f.threshold))
    out.default_value = f.threshold;
  else if (f.optional && f.kind == import::FeatureKind::multi_array)
    out.default_value = f.array.default_value;
  if (auto t = from_ir(f.array.dtype); t.ok()) out.array.type = *t;
  out.array.shape = f.array.shape;
  for (const auto& r : f.array.ranges) out.array.ranges.push_back({r.lower, r.upper});
  out.array.enumerated = f.array.enumerated;
  out.image.width = f.image.width;
  out.image.height = f.image.height;
  out.image.color = static_cast<ColorSpace>(f.image.color);
  if (f.image.width_range) out.image.width_range = SizeRange{f.image.width_range->lower, f.image.width_range->upper};
  if (f.image.height_range)
    out.image.height_range = SizeRange{f.image.height_range->lower, f.image.height_range->upper};
  out.image.enumerated = f.image.enumerated;
  out.string_keys = f.string_keys;
  out.sequence_length = {f.sequence_length.lower, f.sequence_length.upper};
  out.categories = f.categories;
  if (f.index_range) out.index_range = SizeRange{f.index_range->lower, f.index_range->upper};
  return out;
}

UpdateDescription to_public(const import::UpdateDescription& u) {
  UpdateDescription out;
  for (const auto& f : u.training_inputs) out.training_inputs.push_back(to_public(f));
  for (const auto& l : u.layers) out.layers.push_back({l.name, l.type, l.parameters});
  for (const auto& l : u.losses)
    out.losses.push_back({l.name, static_cast<LossLayer::Kind>(l.kind), l.input, l.target, l.training_input});
  out.optimizer = u.optimizer;
  for (const auto& p : u.parameters) out.parameters.push_back({p.name, p.value, p.range, p.bounds, p.allowed});
  if (const auto& n = u.neighbors)
    out.neighbors = NearestNeighbors{n->dimensions, n->samples,       n->index,        n->weighting,
                                     n->leaf_size,  n->string_labels, n->default_label};
  out.stage = u.stage;
  out.fault = u.fault;
  out.remarks = u.remarks;
  return out;
}

FunctionDescription to_public(const import::FunctionDescription& f) {
  FunctionDescription out;
  out.name = f.name;
  for (const auto& x : f.inputs) out.inputs.push_back(to_public(x));
  for (const auto& x : f.outputs) out.outputs.push_back(to_public(x));
  for (const auto& x : f.states) out.states.push_back(to_public(x));
  out.predicted_feature_name = f.predicted_feature_name;
  out.predicted_probabilities_name = f.predicted_probabilities_name;
  return out;
}

ModelDescription to_public(const import::ModelDescription& d) {
  ModelDescription out;
  out.type = d.type_name;
  out.specification_version = d.specification_version;
  for (const auto& f : d.functions) out.functions.push_back(to_public(f));
  out.default_function = d.default_function;
  if (!d.class_labels.empty()) {
    const ir::Tensor& labels = d.class_labels[0];
    out.int64_labels = labels.dtype() != ir::DType::string;
    for (int64_t i = 0; i < labels.count(); i++)
      out.class_labels.push_back(out.int64_labels ? cat(ir::load_i64(labels.view(), i))
                                                  : labels.as<std::string>()[static_cast<size_t>(i)]);
  }
  out.short_description = d.short_description;
  out.author = d.author;
  out.license = d.license;
  out.version = d.version;
  out.user_defined = d.user_defined;
  out.updatable = d.updatable;
  if (d.update != nullptr) out.update = to_public(*d.update);
  out.remarks = d.remarks;
  return out;
}

}  // namespace boundary

}  // namespace moka
