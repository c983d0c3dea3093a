// SPDX-License-Identifier: Apache-2.0
#include "import/description.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "format/proto/model.pb.h"
#include "import/importer.h"
#include "import/model_type.h"
#include "import/pipeline/states.h"
#include "import/pipeline/thresholds.h"
#include "import/update/update.h"

namespace moka::import {

using ir::DType;
using ir::Type;

namespace {

/// A larger size is a mistake in the file.
constexpr int64_t kMaxSize = int64_t{1} << 40;

Result<SizeRange> range_of(const proto::SizeRange& r, std::string_view what) {
  SizeRange out;
  if (r.lowerbound() > static_cast<uint64_t>(kMaxSize))
    return fail(ErrorCode::malformed, what, ": expected a lower bound up to ", kMaxSize, ", got ", r.lowerbound());
  out.lower = static_cast<int64_t>(r.lowerbound());
  out.upper = r.upperbound() < 0 ? -1 : r.upperbound();
  if (out.upper >= 0 && out.upper < out.lower)
    return fail(ErrorCode::malformed, what, ": expected an upper bound of at least ", out.lower, ", got ", out.upper);
  return out;
}

Result<DType> array_dtype(const proto::ArrayFeatureType& array) {
  switch (array.datatype()) {
    case proto::ArrayFeatureType::FLOAT16: return DType::fp16;
    case proto::ArrayFeatureType::FLOAT32: return DType::fp32;
    case proto::ArrayFeatureType::DOUBLE: return DType::fp64;
    case proto::ArrayFeatureType::INT32: return DType::int32;
    case proto::ArrayFeatureType::INT8: return DType::int8;
    case proto::ArrayFeatureType::INVALID_ARRAY_DATA_TYPE: return DType::fp64;
    default: return fail(ErrorCode::malformed, "multi-array: unknown data type ", static_cast<int>(array.datatype()));
  }
}

template <class Sizes>
Result<std::vector<int64_t>> sizes_of(const Sizes& sizes, std::string_view what) {
  std::vector<int64_t> out;
  if (sizes.size() > ir::kMaxRank)
    return fail(ErrorCode::unsupported, what, ": ", sizes.size(), " dimensions, more than ", ir::kMaxRank);
  for (const int64_t d : sizes) {
    if (d < 0 || d > kMaxSize)
      return fail(ErrorCode::malformed, what, ": expected dimensions from 0 to ", kMaxSize, ", got ", d);
    out.push_back(d);
  }
  return out;
}

Result<MultiArrayConstraint> array_of(const proto::ArrayFeatureType& array) {
  MultiArrayConstraint out;
  out.dtype = MOKA_TRY(array_dtype(array));
  out.has_dtype = array.datatype() != proto::ArrayFeatureType::INVALID_ARRAY_DATA_TYPE;
  out.shape = MOKA_TRY(sizes_of(array.shape(), "shape of a multi-array"));
  if (array.has_shaperange()) {
    const auto& ranges = array.shaperange().sizeranges();
    if (!out.shape.empty() && ranges.size() != static_cast<int>(out.shape.size()))
      return fail(ErrorCode::malformed, "shape range of a multi-array: expected ", out.shape.size(),
                  " dimensions, got ", ranges.size());
    if (ranges.size() > ir::kMaxRank)
      return fail(ErrorCode::unsupported, "shape range of a multi-array: ", ranges.size(), " dimensions, more than ",
                  ir::kMaxRank);
    for (const auto& r : ranges) out.ranges.push_back(MOKA_TRY(range_of(r, "shape range of a multi-array")));
  }
  if (array.has_enumeratedshapes()) {
    for (const auto& s : array.enumeratedshapes().shapes())
      out.enumerated.push_back(MOKA_TRY(sizes_of(s.shape(), "enumerated shape of a multi-array")));
  }
  switch (array.defaultOptionalValue_case()) {
    case proto::ArrayFeatureType::kIntDefaultValue: out.default_value = array.intdefaultvalue(); break;
    case proto::ArrayFeatureType::kFloatDefaultValue: out.default_value = array.floatdefaultvalue(); break;
    case proto::ArrayFeatureType::kDoubleDefaultValue: out.default_value = array.doubledefaultvalue(); break;
    default: break;
  }
  return out;
}

Result<ImageConstraint> image_of(const proto::ImageFeatureType& image) {
  ImageConstraint out;
  const auto check = [](int64_t size, std::string_view what) -> Status {
    if (size < 0 || size > kMaxSize)
      return fail(ErrorCode::malformed, what, " of an image: expected 0 to ", kMaxSize, ", got ", size);
    return {};
  };
  MOKA_TRY(check(image.width(), "width"));
  MOKA_TRY(check(image.height(), "height"));
  out.width = image.width();
  out.height = image.height();
  switch (image.colorspace()) {
    case proto::ImageFeatureType::GRAYSCALE: out.color = ColorSpace::grayscale; break;
    case proto::ImageFeatureType::RGB: out.color = ColorSpace::rgb; break;
    case proto::ImageFeatureType::BGR: out.color = ColorSpace::bgr; break;
    case proto::ImageFeatureType::GRAYSCALE_FLOAT16: out.color = ColorSpace::grayscale_float16; break;
    case proto::ImageFeatureType::INVALID_COLOR_SPACE:
      return fail(ErrorCode::malformed, "image: its color space is not specified");
    default: return fail(ErrorCode::malformed, "image: unknown color space ", static_cast<int>(image.colorspace()));
  }
  if (image.has_imagesizerange()) {
    out.width_range = MOKA_TRY(range_of(image.imagesizerange().widthrange(), "width range of an image"));
    out.height_range = MOKA_TRY(range_of(image.imagesizerange().heightrange(), "height range of an image"));
  }
  if (image.has_enumeratedsizes()) {
    for (const auto& s : image.enumeratedsizes().sizes()) {
      const auto width = static_cast<int64_t>(s.width()), height = static_cast<int64_t>(s.height());
      MOKA_TRY(check(width, "enumerated width"));
      MOKA_TRY(check(height, "enumerated height"));
      out.enumerated.emplace_back(width, height);
    }
  }
  return out;
}

}  // namespace

Result<FeatureDescription> read_feature(const proto::FeatureDescription& f) {
  FeatureDescription out;
  if (f.name().empty()) return fail(ErrorCode::malformed, "a feature without a name");
  out.name = f.name();
  out.description = f.shortdescription();
  const proto::FeatureType& type = f.type();
  out.optional = type.isoptional();
  switch (type.Type_case()) {
    case proto::FeatureType::kInt64Type: out.kind = FeatureKind::int64; break;
    case proto::FeatureType::kDoubleType: out.kind = FeatureKind::float64; break;
    case proto::FeatureType::kStringType: out.kind = FeatureKind::string; break;
    case proto::FeatureType::kImageType:
      out.kind = FeatureKind::image;
      out.image = MOKA_TRY(image_of(type.imagetype()));
      break;
    case proto::FeatureType::kMultiArrayType:
      out.kind = FeatureKind::multi_array;
      out.array = MOKA_TRY(array_of(type.multiarraytype()));
      break;
    case proto::FeatureType::kDictionaryType:
      out.kind = FeatureKind::dictionary;
      out.string_keys = !type.dictionarytype().has_int64keytype();
      break;
    case proto::FeatureType::kSequenceType:
      out.kind = FeatureKind::sequence;
      out.string_keys = !type.sequencetype().has_int64type();
      out.sequence_length = {0, -1};
      if (type.sequencetype().has_sizerange())
        out.sequence_length = MOKA_TRY(range_of(type.sequencetype().sizerange(), "sequence"));
      break;
    case proto::FeatureType::kStateType:
      out.kind = FeatureKind::state;
      if (!type.statetype().has_arraytype())
        return fail(ErrorCode::malformed, "state: expected a multi-array type, got none");
      out.array = MOKA_TRY(array_of(type.statetype().arraytype()));
      break;
    default: return fail(ErrorCode::malformed, "expected a feature type, got none");
  }
  return out;
}

namespace {

/// Callers must know the element type of the model's own arrays.
Status check_dtype(const FeatureDescription& f) {
  if (f.kind == FeatureKind::multi_array && !f.array.has_dtype)
    return fail(ErrorCode::malformed, "multi-array: its data type is not specified");
  return {};
}

/// How to treat a feature that cannot be read: with `faults`, skip it and record the reason; without, fail.
template <class Features>
Result<std::vector<FeatureDescription>> features_of(const Features& features, std::string_view what,
                                                    std::vector<std::string>* faults) {
  std::vector<FeatureDescription> out;
  for (const auto& f : features) {
    auto feature = read_feature(f);
    if (feature.ok() && faults != nullptr)
      if (Status typed = check_dtype(*feature); !typed.ok()) feature = std::move(typed).error();
    if (feature.ok()) {
      out.push_back(std::move(feature).value());
      continue;
    }
    Error error = std::move(feature).error().in(cat(what, " '", f.name(), "'"));
    if (faults == nullptr) return error;
    faults->push_back(error.to_string());
  }
  return out;
}

/// Describes a function, or a model with only one.
template <class D>
Result<FunctionDescription> function_of(const D& d, std::string name, std::vector<std::string>* faults) {
  FunctionDescription out;
  out.inputs = MOKA_TRY(features_of(d.input(), "input", faults));
  out.outputs = MOKA_TRY(features_of(d.output(), "output", faults));
  out.states = MOKA_TRY(features_of(d.state(), "state", faults));
  out.predicted_feature_name = d.predictedfeaturename();
  out.predicted_probabilities_name = d.predictedprobabilitiesname();
  out.name = std::move(name);
  return out;
}

/// Adds the states of the models inside a pipeline that the pipeline itself does not describe.
Status add_stage_states(const proto::Model& model, const format::ModelFile& file, FunctionDescription& function) {
  for (const proto::FeatureDescription* state : stage_states(model, file)) {
    const auto& known = function.states;
    if (std::any_of(known.begin(), known.end(), [&](const auto& f) { return f.name == state->name(); })) continue;
    function.states.push_back(MOKA_TRY_IN(read_feature(*state), cat("state '", state->name(), "'")));
  }
  return {};
}

/// The sizes of one dimension, reduced to a single size if there is only one.
int64_t common_size(const MultiArrayConstraint& a, size_t axis) {
  if (!a.ranges.empty()) return a.ranges[axis].lower == a.ranges[axis].upper ? a.ranges[axis].lower : ir::kAnyDim;
  const int64_t size = a.shape.empty() ? a.enumerated[0][axis] : a.shape[axis];
  for (const auto& s : a.enumerated)
    if (s[axis] != size) return ir::kAnyDim;
  return size;
}

Result<Type> array_type(const MultiArrayConstraint& a, DType dtype) {
  const size_t rank = a.rank();
  // A description without a shape says nothing about the rank.
  if (rank == 0) return Type::unranked(dtype);
  for (const auto& s : a.enumerated)
    if (s.size() != rank) return Type::unranked(dtype);
  std::vector<int64_t> dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(common_size(a, i));
  return Type::tensor(dtype, MOKA_TRY(ir::Shape::make(dims)));
}

Result<Type> image_type(const ImageConstraint& image) {
  int64_t width = image.width, height = image.height;
  for (const auto& [w, h] : image.enumerated) {
    if (w != width) width = ir::kAnyDim;
    if (h != height) height = ir::kAnyDim;
  }
  if (image.width_range)
    width = image.width_range->lower == image.width_range->upper ? image.width_range->lower : ir::kAnyDim;
  if (image.height_range)
    height = image.height_range->lower == image.height_range->upper ? image.height_range->lower : ir::kAnyDim;
  const bool color = image.color == ColorSpace::rgb || image.color == ColorSpace::bgr;
  return Type::tensor(image.color == ColorSpace::grayscale_float16 ? DType::fp16 : DType::fp32,
                      {1, color ? 3 : 1, height, width});
}

}  // namespace

namespace {

/// Everything except the functions and class labels.
ModelDescription metadata_of(const proto::Model& model, const format::ModelFile& file) {
  const proto::ModelDescription& d = model.description();
  ModelDescription out;
  out.type_name = model_type_name(model_type(model, file));
  out.specification_version = model.specificationversion();
  out.updatable = model.isupdatable();
  if (auto update = describe_update(model, file))
    out.update = std::make_shared<const UpdateDescription>(*std::move(update));
  out.short_description = d.metadata().shortdescription();
  out.author = d.metadata().author();
  out.license = d.metadata().license();
  out.version = d.metadata().versionstring();
  for (const auto& [key, value] : d.metadata().userdefined()) out.user_defined.emplace(key, value);
  return out;
}

}  // namespace

ModelDescription describe_readable(const proto::Model& model, const format::ModelFile& file,
                                   std::vector<std::string>& faults) {
  const proto::ModelDescription& d = model.description();
  ModelDescription out = metadata_of(model, file);
  out.default_function = d.defaultfunctionname();
  if (d.functions_size() == 0) {
    out.functions.push_back(function_of(d, "main", &faults).value());
    mark_thresholds(model, file, out.functions[0]);
  }
  for (const auto& f : d.functions()) out.functions.push_back(function_of(f, f.name(), &faults).value());
  if (out.function(out.default_function) == nullptr)
    out.default_function = out.function("main") != nullptr ? "main" : out.functions[0].name;
  return out;
}

std::vector<int64_t> MultiArrayConstraint::default_shape() const {
  if (!shape.empty()) return shape;
  if (!enumerated.empty()) return enumerated[0];
  std::vector<int64_t> out;
  for (const SizeRange& r : ranges) out.push_back(r.lower);
  return out;
}

Error with_empty_input(Error error, const FunctionDescription& function) {
  for (const FeatureDescription& f : function.inputs) {
    std::vector<int64_t> sizes;
    if (f.kind == FeatureKind::multi_array && f.array.enumerated.empty() && f.array.ranges.empty())
      sizes = f.array.shape;
    else if (f.kind == FeatureKind::image && f.image.enumerated.empty() && !f.image.width_range)
      sizes = {f.image.width, f.image.height};
    if (std::find(sizes.begin(), sizes.end(), 0) == sizes.end()) continue;
    std::string all;
    for (const int64_t size : sizes) all += cat(all.empty() ? "" : " x ", size);
    return std::move(error).in(cat("input '", f.name, "' is described with a size of 0 (", all, ")"));
  }
  return error;
}

Result<ModelDescription> describe(const proto::Model& model, const format::ModelFile& file) {
  const proto::ModelDescription& d = model.description();
  ModelDescription out = metadata_of(model, file);
  if (d.functions_size() == 0) {
    out.default_function = "main";
    out.functions.push_back(MOKA_TRY(function_of(d, "main", nullptr)));
    MOKA_TRY(add_stage_states(model, file, out.functions[0]));
    mark_thresholds(model, file, out.functions[0]);
  } else {
    for (const auto& f : d.functions()) {
      if (out.function(f.name()) != nullptr)
        return fail(ErrorCode::malformed, "function '", f.name(), "' is described twice");
      out.functions.push_back(MOKA_TRY_IN(function_of(f, f.name(), nullptr), cat("function '", f.name(), "'")));
    }
    out.default_function = d.defaultfunctionname();
    if (out.default_function.empty())
      out.default_function = out.function("main") != nullptr ? "main" : out.functions[0].name;
    if (out.function(out.default_function) == nullptr)
      return fail(ErrorCode::malformed, "default function '", out.default_function, "' is not among the ",
                  out.functions.size(), " described ones");
  }
  out.class_labels = MOKA_TRY(class_labels(model, nullptr));
  return out;
}

Status check_dtypes(const ModelDescription& description) {
  for (const FunctionDescription& f : description.functions)
    for (const auto& [what, list] : {std::pair{"input", &f.inputs}, {"output", &f.outputs}})
      for (const FeatureDescription& feature : *list)
        MOKA_TRY_IN(check_dtype(feature), cat(what, " '", feature.name, "'"));
  return {};
}

Result<Type> boundary_type(const FeatureDescription& f, bool classic) {
  switch (f.kind) {
    case FeatureKind::int64: return Type::scalar(DType::int64);
    case FeatureKind::float64: return Type::scalar(DType::fp64);
    case FeatureKind::string: return Type::scalar(DType::string);
    case FeatureKind::multi_array: return array_type(f.array, classic ? f.array.dtype : DType::fp32);
    case FeatureKind::image: return image_type(f.image);
    case FeatureKind::dictionary:
      return Type::dict(Type::scalar(f.string_keys ? DType::string : DType::int64), Type::scalar(DType::fp64));
    case FeatureKind::sequence:
      return Type::tensor(f.string_keys ? DType::string : DType::int64,
                          {f.sequence_length.lower == f.sequence_length.upper ? f.sequence_length.lower : ir::kAnyDim});
    case FeatureKind::state: return Type::state(MOKA_TRY(array_type(f.array, f.array.dtype)));
  }
  return fail(ErrorCode::internal, "feature '", f.name, "': unknown kind");
}

}  // namespace moka::import
