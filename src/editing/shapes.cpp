// SPDX-License-Identifier: Apache-2.0
#include "editing/shapes.h"

#include <algorithm>

#include "editing/infer.h"
#include "editing/program.h"
#include "import/importer.h"

namespace moka::editing {
namespace {

constexpr int kFlexible = 3;  // version of the specification that has flexible sizes

std::string text_of_shape(const std::vector<int64_t>& shape) {
  std::string out;
  for (int64_t size : shape) out += cat(out.empty() ? "" : ", ", size);
  return cat("[", out, "]");
}

/// The message of an input's type: ArrayFeatureType or ImageFeatureType.
struct Target {
  Message type;
  bool is_image = false;
  std::vector<int64_t> old;  ///< the default sizes
};

Result<Target> target_of(const Feature& feature) {
  const Message type = MOKA_TRY(feature.message.child("type"));
  const std::string kind = MOKA_TRY(type.which("Type"));
  if (kind == "imageType") {
    const Message image = MOKA_TRY(type.child(kind));
    return Target{image, true, {MOKA_TRY(integer_of(image, "height")), MOKA_TRY(integer_of(image, "width"))}};
  }
  if (kind != "multiArrayType")
    return fail(ErrorCode::invalid_argument, "'", feature.name, "': expected an array or an image, got ",
                name_of_type(kind));
  const Message array = MOKA_TRY(type.child(kind));
  std::vector<int64_t> old = MOKA_TRY(integers_of(array, "shape"));
  if (old.empty() && MOKA_TRY(array.which("ShapeFlexibility")) == std::string("shapeRange")) {
    const Message list = MOKA_TRY(array.child("shapeRange"));
    for (const Message& range : MOKA_TRY(list.children("sizeRanges")))
      old.push_back(MOKA_TRY(integer_of(range, "lowerBound")));
  }
  return Target{array, false, std::move(old)};
}

/// Checks the sizes and completes them with a default.
Status complete(const std::string& name, const Target& target, Sizes& sizes) {
  const size_t rank = target.old.size();
  const auto refuse = [&](const auto&... what) { return fail(ErrorCode::invalid_argument, "'", name, "': ", what...); };
  if (sizes.ranges.empty() == sizes.enumerated.empty())
    return refuse("expected ranges or enumerated shapes, got ", sizes.ranges.empty() ? "none" : "both");
  for (const std::vector<int64_t>& shape : sizes.enumerated) {
    if (rank != 0 && shape.size() != rank)
      return refuse("expected shapes of ", rank, " dimensions, got ", text_of_shape(shape));
    if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 1; }))
      return refuse("expected sizes of 1 and more, got ", text_of_shape(shape));
  }
  if (!sizes.enumerated.empty()) {
    sizes.standard = sizes.enumerated[0];
    return {};
  }
  if (rank != 0 && sizes.ranges.size() != rank)
    return refuse("expected sizes for ", rank, " dimensions, got ", sizes.ranges.size());
  for (const auto& [lower, upper] : sizes.ranges)
    if (lower < 1 || (upper != -1 && upper < lower))
      return refuse("expected a range of sizes from 1 on, got ", lower, " to ", upper);
  const auto fits = [&](const std::vector<int64_t>& shape) {
    if (shape.size() != sizes.ranges.size()) return false;
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] < sizes.ranges[i].first || (sizes.ranges[i].second >= 0 && shape[i] > sizes.ranges[i].second))
        return false;
    return true;
  };
  if (!sizes.standard.empty()) {
    if (!fits(sizes.standard))
      return refuse("the default ", text_of_shape(sizes.standard), " is not within the ranges");
    return {};
  }
  if (fits(target.old)) {
    sizes.standard = target.old;
    return {};
  }
  for (const auto& [lower, upper] : sizes.ranges) sizes.standard.push_back(lower);
  return {};
}

bool is_fixed(const Sizes& sizes) {
  if (!sizes.enumerated.empty()) return sizes.enumerated.size() == 1;
  return std::all_of(sizes.ranges.begin(), sizes.ranges.end(), [](auto& r) { return r.first == r.second; });
}

/// -1 where the size is flexible.
std::vector<int64_t> declared_shape(const Sizes& sizes) {
  std::vector<int64_t> out = sizes.standard;
  for (size_t i = 0; i < sizes.ranges.size(); ++i)
    if (sizes.ranges[i].first != sizes.ranges[i].second) out[i] = -1;
  for (const std::vector<int64_t>& shape : sizes.enumerated)
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] != sizes.standard[i]) out[i] = -1;
  return out;
}

Status set_range(const Message& message, const std::pair<int64_t, int64_t>& range) {
  MOKA_TRY(set_integer(message, "lowerBound", range.first));
  return set_integer(message, "upperBound", range.second);
}

Status describe_array(Message array, const Sizes& sizes) {
  MOKA_TRY(set_integers(array, "shape", sizes.standard));
  MOKA_TRY(array.clear("enumeratedShapes"));
  MOKA_TRY(array.clear("shapeRange"));
  if (is_fixed(sizes)) return {};
  if (!sizes.enumerated.empty()) {
    Message list = MOKA_TRY(array.edit("enumeratedShapes"));
    for (const std::vector<int64_t>& shape : sizes.enumerated)
      MOKA_TRY(set_integers(MOKA_TRY(list.edit("shapes")), "shape", shape));
    return {};
  }
  Message list = MOKA_TRY(array.edit("shapeRange"));
  for (const auto& range : sizes.ranges) MOKA_TRY(set_range(MOKA_TRY(list.edit("sizeRanges")), range));
  return {};
}

Status describe_image(Message image, const Sizes& sizes) {
  MOKA_TRY(set_integer(image, "height", sizes.standard[0]));
  MOKA_TRY(set_integer(image, "width", sizes.standard[1]));
  MOKA_TRY(image.clear("enumeratedSizes"));
  MOKA_TRY(image.clear("imageSizeRange"));
  if (is_fixed(sizes)) return {};
  if (!sizes.enumerated.empty()) {
    Message list = MOKA_TRY(image.edit("enumeratedSizes"));
    for (const std::vector<int64_t>& shape : sizes.enumerated) {
      const Message size = MOKA_TRY(list.edit("sizes"));
      MOKA_TRY(set_integer(size, "height", shape[0]));
      MOKA_TRY(set_integer(size, "width", shape[1]));
    }
    return {};
  }
  Message range = MOKA_TRY(image.edit("imageSizeRange"));
  MOKA_TRY(set_range(MOKA_TRY(range.edit("heightRange")), sizes.ranges[0]));
  return set_range(MOKA_TRY(range.edit("widthRange")), sizes.ranges[1]);
}

/// Declares the sizes of a function's inputs; -1 is any.
Status declare(const Message& model, const std::map<std::string, std::vector<int64_t>>& shapes) {
  for (const ProgramFunction& function : MOKA_TRY(program_functions(model)))
    for (Message input : MOKA_TRY(function.function.children("inputs"))) {
      const auto it = shapes.find(MOKA_TRY(text_of(input, "name")));
      if (it == shapes.end()) continue;
      std::optional<TensorType> type = MOKA_TRY(tensor_type(MOKA_TRY(input.child("type"))));
      if (!type || type->shape.size() < it->second.size())
        return fail(ErrorCode::malformed, "input '", it->first, "': the program declares another rank");
      // The sizes of an image are the last two of four.
      std::copy(it->second.begin(), it->second.end(),
                type->shape.end() - static_cast<std::ptrdiff_t>(it->second.size()));
      MOKA_TRY(input.set("type", MOKA_TRY(make_type(*type))));
    }
  return {};
}

/// The sizes to try: the default, all enumerated shapes, and both ends of the ranges.
std::vector<std::map<std::string, std::vector<int64_t>>> trials(const std::map<std::string, Sizes>& inputs) {
  size_t most = 3;
  for (const auto& [name, sizes] : inputs) most = std::max(most, sizes.enumerated.size());
  std::vector<std::map<std::string, std::vector<int64_t>>> out(most);
  for (size_t i = 0; i < most; ++i)
    for (const auto& [name, sizes] : inputs) {
      std::vector<int64_t>& shape = out[i][name] = sizes.standard;
      if (!sizes.enumerated.empty()) shape = sizes.enumerated[std::min(i, sizes.enumerated.size() - 1)];
      for (size_t k = 0; k < sizes.ranges.size() && i > 0; ++k)
        shape[k] = i == 1 ? sizes.ranges[k].first : std::max(sizes.ranges[k].second, shape[k]);
    }
  return out;
}

/// Imports the model for some sizes.
Status try_sizes(const format::ModelSource& source, const std::map<std::string, std::vector<int64_t>>& shapes) {
  format::ModelSource copy = source;
  copy.specification = source.specification.copy();
  for (const auto& [name, shape] : shapes) {
    Sizes fixed;
    fixed.enumerated = {shape};
    fixed.standard = shape;
    for (const Feature& feature : MOKA_TRY(find_features(copy.specification, name, Side::inputs))) {
      const Target target = MOKA_TRY(target_of(feature));
      MOKA_TRY(target.is_image ? describe_image(target.type, fixed) : describe_array(target.type, fixed));
    }
  }
  if (MOKA_TRY(kind_of(copy.specification)) != "mlProgram") return check_import(copy);
  MOKA_TRY(declare(copy.specification, shapes));
  MOKA_TRY(infer_types(copy));
  return {};
}

/// Describes the outputs of programs with the inferred sizes.
Status describe_outputs(const Message& model) {
  for (const Interface& interface : MOKA_TRY(interfaces(model))) {
    const ProgramFunction function = MOKA_TRY(function_of(model, interface));
    std::map<std::string, TensorType> types;
    for (const Message& op : MOKA_TRY(function.block.children("operations")))
      for (const Message& output : MOKA_TRY(op.children("outputs")))
        if (const auto type = MOKA_TRY(tensor_type(MOKA_TRY(child_or_empty(output, "type")))))
          types[MOKA_TRY(text_of(output, "name"))] = *type;
    for (const Feature& feature : MOKA_TRY(features(interface))) {
      if (feature.is_input || !types.contains(feature.name)) continue;
      const std::vector<int64_t>& shape = types.at(feature.name).shape;
      const bool known = std::find(shape.begin(), shape.end(), -1) == shape.end();
      const Message type = MOKA_TRY(child_or_empty(feature.message, "type"));
      const std::string kind = MOKA_TRY(type.which("Type"));
      if (kind == "imageType" && known && shape.size() == 4) {
        const Message image = MOKA_TRY(type.child(kind));
        MOKA_TRY(set_integer(image, "height", shape[2]));
        MOKA_TRY(set_integer(image, "width", shape[3]));
      }
      if (kind != "multiArrayType") continue;
      Message array = MOKA_TRY(type.child(kind));
      for (const char* field : {"shape", "enumeratedShapes", "shapeRange"}) MOKA_TRY(array.clear(field));
      if (known) MOKA_TRY(set_integers(array, "shape", shape.empty() ? std::vector<int64_t>{1} : shape));
    }
  }
  return {};
}

}  // namespace

Status set_sizes(format::ModelSource& source, const std::map<std::string, Sizes>& inputs) {
  const Message& model = source.specification;
  const std::string kind = MOKA_TRY(kind_of(model));
  if (kind != "mlProgram" && !is_network(kind))
    return fail(ErrorCode::unsupported, "shapes: expected an ML program or a neural network, got ", name_of_kind(kind));
  std::map<std::string, Sizes> completed = inputs;
  std::map<std::string, std::vector<int64_t>> declared;
  bool flexible = false;
  for (auto& [name, sizes] : completed)
    for (const Feature& feature : MOKA_TRY(find_features(model, name, Side::inputs))) {
      if (feature.is_state) return fail(ErrorCode::invalid_argument, "'", name, "': a state keeps its shape");
      const Target target = MOKA_TRY(target_of(feature));
      MOKA_TRY(complete(name, target, sizes));
      MOKA_TRY(target.is_image ? describe_image(target.type, sizes) : describe_array(target.type, sizes));
      declared[name] = declared_shape(sizes);
      flexible |= !is_fixed(sizes);
    }
  for (const auto& shapes : trials(completed)) {
    std::string text;
    for (const auto& [name, shape] : shapes) text += cat(text.empty() ? "" : ", ", name, " ", text_of_shape(shape));
    if (Status tried = try_sizes(source, shapes); !tried.ok())
      return fail(ErrorCode::invalid_argument, "with ", text, ": ", tried.error().to_string());
  }
  if (kind == "mlProgram") {
    MOKA_TRY(declare(model, declared));
    MOKA_TRY(infer_again(source));
    MOKA_TRY(describe_outputs(model));
  }
  return flexible ? need_version(model, kFlexible) : Status();
}

}  // namespace moka::editing
