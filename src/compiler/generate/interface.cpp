// SPDX-License-Identifier: Apache-2.0
#include "compiler/generate/interface.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <sstream>

#include "compiler/class_name.h"
#include "compiler/generate/source.h"

namespace moka::compiler {
namespace {

using import::FeatureKind;

/// A multi-byte letter becomes one underscore.
std::string in_ascii(std::string_view name) {
  std::string out;
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) continue;
    out += byte < 0x80 ? c : '_';
  }
  return out;
}

std::string identifier(std::string_view name, const Naming& naming) {
  std::string out = class_name(naming.letters_beyond_ascii ? std::string(name) : in_ascii(name));
  const auto is_in = [&](std::string_view names) {
    std::istringstream all{std::string(names)};
    const std::istream_iterator<std::string> end;
    return std::find(std::istream_iterator<std::string>(all), end, out) != end;
  };
  if (is_in(naming.reserved) || is_in(naming.types)) out += '_';
  return out;
}

std::vector<Field> fields(const std::vector<import::FeatureDescription>& features, const Naming& naming) {
  std::vector<Field> out;
  std::set<std::string> taken;
  for (const auto& feature : features) {
    const std::string first = identifier(feature.name, naming);
    std::string name = first;
    const auto names = [&] {
      std::vector<std::string> all{name};
      if (naming.accessors != nullptr) std::ranges::move(naming.accessors(feature, name), std::back_inserter(all));
      return all;
    };
    const auto is_taken = [&](const std::string& made) { return taken.count(made) > 0; };
    for (int n = 2; std::ranges::any_of(names(), is_taken); ++n) name = cat(first, "_", n);
    for (std::string& made : names()) taken.insert(std::move(made));
    out.push_back({feature, name});
  }
  return out;
}

const char* element_in_words(ir::DType type) {
  switch (type) {
    case ir::DType::fp16: return "16-bit floats";
    case ir::DType::fp64: return "doubles";
    case ir::DType::int32: return "32-bit integers";
    case ir::DType::int8: return "8-bit integers";
    default: return "floats";
  }
}

std::string array_in_words(const import::MultiArrayConstraint& array) {
  const std::string elements = cat(" of ", element_in_words(array.dtype));
  const auto& shape = array.shape;
  if (shape.empty()) return "multidimensional array" + elements;
  if (shape.size() == 1) return cat(shape[0], " element vector", elements);
  if (shape.size() == 2) return cat(shape[0], " by ", shape[1], " matrix", elements);
  std::string sizes;
  for (int64_t size : shape) sizes += cat(sizes.empty() ? "" : " \u00d7 ", size);
  return cat(sizes, " ", shape.size(), "-dimensional array", elements);
}

std::string image_in_words(const import::ImageConstraint& image, const PixelFormats& formats) {
  const bool gray = image.color == import::ColorSpace::grayscale;
  const bool half = image.color == import::ColorSpace::grayscale_float16;
  return cat(gray || half ? "grayscale (" : "color (",
             gray   ? formats.gray
             : half ? formats.half
                    : formats.color,
             ") image buffer, ", image.width, " pixels wide by ", image.height, " pixels high");
}

std::string type_in_words(const import::FeatureDescription& f, const PixelFormats& formats) {
  const char* keys = f.string_keys ? "strings" : "64-bit integers";
  switch (f.kind) {
    case FeatureKind::int64: return "integer value";
    case FeatureKind::float64: return "double value";
    case FeatureKind::string: return "string value";
    case FeatureKind::image: return image_in_words(f.image, formats);
    case FeatureKind::dictionary: return cat("dictionary of ", keys, " to doubles");
    case FeatureKind::sequence: return cat("sequence of ", keys);
    case FeatureKind::multi_array:
    case FeatureKind::state: return array_in_words(f.array);
  }
  return "";
}

/// What the model uses where the input is absent, or, where it must not be, what it would use: ", by default 0.45".
std::string default_in_words(const import::FeatureDescription& f) {
  if (f.threshold && std::isnan(*f.threshold)) return f.optional ? ", by default the model's own values" : "";
  if (f.threshold) return cat(f.optional ? ", by default " : "; the model's own is ", *f.threshold);
  const auto& value = f.array.default_value;
  return f.optional && f.kind == FeatureKind::multi_array && value ? cat(", by default filled with ", *value) : "";
}

}  // namespace

Interface describe_interface(const import::ModelDescription& description, const std::string& model_name,
                             const Naming& naming) {
  const import::FunctionDescription& function = *description.function(description.default_function);
  Interface out;
  out.class_name = identifier(model_name, naming);
  out.resource = model_name;
  out.summary = one_line(description.short_description);
  out.specification_version = description.specification_version;
  out.inputs = fields(function.inputs, naming);
  out.outputs = fields(function.outputs, naming);
  out.states = fields(function.states, naming);
  return out;
}

std::string documentation(const Field& field, const PixelFormats& formats) {
  const import::FeatureDescription& f = field.feature;
  return cat(one_line(f.description.empty() ? f.name : f.description), f.optional ? " as optional " : " as ",
             type_in_words(f, formats), default_in_words(f));
}

}  // namespace moka::compiler
