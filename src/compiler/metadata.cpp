// SPDX-License-Identifier: Apache-2.0
#include "compiler/metadata.h"

#include <algorithm>

namespace moka::compiler {
namespace {

using import::FeatureDescription;
using import::FeatureKind;
using import::SizeRange;
using nlohmann::json;

constexpr std::string_view times = " \u00d7 ";  // between sizes

template <class List>
std::string joined(const List& list, std::string_view between) {
  std::string out;
  for (const auto& item : list) {
    if (!out.empty()) out += between;
    out += cat(item);
  }
  return out;
}

std::string bracketed(const std::vector<int64_t>& list) { return "[" + joined(list, ", ") + "]"; }

std::string range(const SizeRange& r) { return bracketed({r.lower, r.upper}); }

/// "1...2048", "1..." without an upper bound, "3" for one size.
std::string range_text(const SizeRange& r) {
  if (r.upper == r.lower) return cat(r.lower);
  return cat(r.lower, "...", r.upper < 0 ? std::string() : cat(r.upper));
}

void add_array(json& out, const import::MultiArrayConstraint& a, const char* kind) {
  const std::string type = type_name(a.dtype);
  const std::vector<int64_t> shape = a.default_shape();
  out["dataType"] = type;
  out["shape"] = bracketed(shape);
  out["formattedType"] = cat(kind, " (", type, shape.empty() ? "" : " ", joined(shape, times), ")");
}

void add_flexibility(json& out, const import::MultiArrayConstraint& a) {
  const bool fixed = std::all_of(a.ranges.begin(), a.ranges.end(), [](auto& r) { return r.lower == r.upper; });
  const bool ranges = !a.ranges.empty() && !fixed;
  out["hasShapeFlexibility"] = ranges || !a.enumerated.empty() ? "1" : "0";
  if (ranges) {
    std::vector<std::string> texts, numbers;
    for (const SizeRange& r : a.ranges) {
      texts.push_back(range_text(r));
      numbers.push_back(range(r));
    }
    out["shapeFlexibility"] = joined(texts, times);
    out["shapeRange"] = "[" + joined(numbers, ", ") + "]";
  } else if (!a.enumerated.empty()) {
    std::vector<std::string> texts, numbers;
    for (const auto& shape : a.enumerated) {
      texts.push_back(joined(shape, times));
      numbers.push_back(bracketed(shape));
    }
    out["shapeFlexibility"] = joined(texts, " | ");
    out["enumeratedShapes"] = "[" + joined(numbers, ", ") + "]";
  }
}

void add_image(json& out, const import::ImageConstraint& image) {
  const bool gray =
      image.color == import::ColorSpace::grayscale || image.color == import::ColorSpace::grayscale_float16;
  out["width"] = cat(image.width);
  out["height"] = cat(image.height);
  out["isColor"] = gray ? "0" : "1";
  out["colorspace"] = image.color == import::ColorSpace::grayscale_float16 ? "Grayscale16Half"
                      : gray                                               ? "Grayscale"
                      : image.color == import::ColorSpace::bgr             ? "BGR"
                                                                           : "RGB";
  out["formattedType"] = cat("Image (", gray ? "Grayscale " : "Color ", image.width, times, image.height, ")");
  const bool ranges = image.width_range && image.height_range;
  out["hasSizeFlexibility"] = ranges || !image.enumerated.empty() ? "1" : "0";
  if (ranges) {
    out["sizeFlexibility"] = cat(range_text(*image.width_range), times, range_text(*image.height_range));
    out["sizeRange"] = cat("[", range(*image.width_range), ", ", range(*image.height_range), "]");
  } else if (!image.enumerated.empty()) {
    std::vector<std::string> texts, numbers;
    for (const auto& [w, h] : image.enumerated) {
      texts.push_back(cat(w, times, h));
      numbers.push_back(bracketed({w, h}));
    }
    out["sizeFlexibility"] = joined(texts, " | ");
    out["enumeratedSizes"] = "[" + joined(numbers, ", ") + "]";
  }
}

json schema(const FeatureDescription& f) {
  json out{{"name", f.name}, {"shortDescription", f.description}, {"isOptional", f.optional ? "1" : "0"}};
  auto plain = [&](const char* type) {
    out["type"] = type;
    out["formattedType"] = type;
  };
  switch (f.kind) {
    case FeatureKind::int64: plain("Int64"); break;
    case FeatureKind::float64: plain("Double"); break;
    case FeatureKind::string: plain("String"); break;
    case FeatureKind::multi_array:
      out["type"] = "MultiArray";
      add_array(out, f.array, "MultiArray");
      add_flexibility(out, f.array);
      break;
    case FeatureKind::state:
      out["type"] = "State";
      add_array(out, f.array, "State");
      break;
    case FeatureKind::image:
      out["type"] = "Image";
      add_image(out, f.image);
      break;
    case FeatureKind::dictionary:
      out["type"] = "Dictionary";
      out["keyType"] = f.string_keys ? "String" : "Int64";
      out["formattedType"] = f.string_keys ? "Dictionary (String \u2192 Double)" : "Dictionary (Int64 \u2192 Double)";
      break;
    case FeatureKind::sequence:
      out["type"] = "Sequence";
      out["formattedType"] = f.string_keys ? "Sequence (String)" : "Sequence (Int64)";
      break;
  }
  return out;
}

json schemas(const std::vector<FeatureDescription>& features) {
  json out = json::array();
  for (const auto& f : features) out.push_back(schema(f));
  return out;
}

json availability(int specification_version) {
  const Systems& s = systems_of(specification_version);
  return {{"iOS", s.ios},         {"macOS", s.macos},       {"tvOS", s.tvos},
          {"watchOS", s.watchos}, {"visionOS", s.visionos}, {"macCatalyst", s.catalyst}};
}

void add_labels(json& out, const std::vector<ir::Tensor>& labels) {
  if (labels.empty()) return;
  const ir::Tensor& t = labels[0];
  json list = json::array();
  for (int64_t i = 0; i < t.count(); ++i) {
    if (t.dtype() == ir::DType::string)
      list.push_back(t.view().as<std::string>()[i]);
    else
      list.push_back(cat(ir::load_i64(t.view(), i)));
  }
  out["classLabels"] = std::move(list);
}

}  // namespace

const Systems& systems_of(int specification_version) {
  static constexpr Systems rows[] = {
      {"11.0", "10.13", "11.0", "4.0", "1.0", "11.0"}, {"11.2", "10.13.2", "11.2", "4.2", "1.0", "11.2"},
      {"12.0", "10.14", "12.0", "5.0", "1.0", "12.0"}, {"13.0", "10.15", "13.0", "6.0", "1.0", "13.0"},
      {"14.0", "11.0", "14.0", "7.0", "1.0", "14.0"},  {"15.0", "12.0", "15.0", "8.0", "1.0", "15.0"},
      {"16.0", "13.0", "16.0", "9.0", "1.0", "16.0"},  {"17.0", "14.0", "17.0", "10.0", "1.0", "17.0"},
      {"18.0", "15.0", "18.0", "11.0", "2.0", "18.0"}, {"26.0", "26.0", "26.0", "26.0", "26.0", "26.0"}};
  return rows[std::clamp(specification_version, 1, static_cast<int>(std::size(rows))) - 1];
}

json metadata(const import::ModelDescription& d, const ModelFacts& facts) {
  const import::FunctionDescription& f = *d.function(d.default_function);
  json out{{"metadataOutputVersion", "3.0"},
           {"modelParameters", json::array()},
           {"specificationVersion", d.specification_version},
           {"isUpdatable", d.updatable ? "1" : "0"},
           {"method", "predict"},
           {"generatedClassName", facts.class_name},
           {"modelType", facts.model_type},
           {"userDefinedMetadata", d.user_defined},
           {"availability", availability(d.specification_version)},
           {"inputSchema", schemas(f.inputs)},
           {"outputSchema", schemas(f.outputs)},
           {"stateSchema", schemas(f.states)}};
  const std::pair<const char*, const std::string*> texts[] = {{"shortDescription", &d.short_description},
                                                              {"author", &d.author},
                                                              {"license", &d.license},
                                                              {"version", &d.version}};
  for (const auto& [key, text] : texts)
    if (!text->empty()) out[key] = *text;
  add_labels(out, d.class_labels);
  if (facts.has_program) {
    out["mlProgramOperationTypeHistogram"] = facts.program.histogram;
    out["computePrecision"] = precision(facts.program.compute);
    if (!facts.program.storage.empty()) out["storagePrecision"] = precision(facts.program.storage);
  }
  if (!facts.layers.empty()) {
    out["neuralNetworkLayerTypeHistogram"] = facts.layers;
    out["computePrecision"] = "Float16";
    if (!facts.weights.empty()) out["storagePrecision"] = precision(facts.weights);
  }
  if (!facts.functions.empty()) {
    json functions = json::array();
    for (const auto& [name, program] : facts.functions) {
      const import::FunctionDescription& g = *d.function(name);
      functions.push_back({{"name", name},
                           {"inputSchema", schemas(g.inputs)},
                           {"outputSchema", schemas(g.outputs)},
                           {"stateSchema", schemas(g.states)},
                           {"computePrecision", precision(program.compute)},
                           {"mlProgramOperationTypeHistogram", program.histogram}});
    }
    out["functions"] = std::move(functions);
    out["defaultFunctionName"] = d.default_function;
  }
  return json::array({std::move(out)});
}

}  // namespace moka::compiler
