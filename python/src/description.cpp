// SPDX-License-Identifier: Apache-2.0
#include "moka/description.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "values.h"

namespace moka::python {

namespace {

const char* name_of(ColorSpace color) {
  switch (color) {
    case ColorSpace::grayscale: return "grayscale";
    case ColorSpace::rgb: return "rgb";
    case ColorSpace::bgr: return "bgr";
    case ColorSpace::grayscale_float16: return "grayscale_float16";
  }
  return "";
}

using Shape = nb::typed<nb::tuple, nb::int_, nb::ellipsis>;

Shape shape_of(const std::vector<int64_t>& sizes) { return nb::tuple(nb::cast(sizes)); }

}  // namespace

void bind_description(nb::module_& m) {
  nb::class_<FeatureDescription> feature(m, "FeatureDescription",
                                         "Core ML's MLFeatureDescription: one input, output or state.");
  bind_report(feature, nullptr, "feature_html");
  feature.def_ro("name", &FeatureDescription::name)
      .def_ro("description", &FeatureDescription::description)
      .def_ro("optional", &FeatureDescription::optional)
      .def_prop_ro(
          "type", [](const FeatureDescription& f) { return std::string(to_string(f.type)); },
          "'MultiArray', 'Image', 'Int64', 'Double', 'String', 'Dictionary', 'Sequence' or 'State'.")
      .def_prop_ro("formatted_type", &FeatureDescription::formatted_type,
                   "The type as a person reads it: 'MultiArray (Float32 1 x 10)'.")
      .def_prop_ro(
          "dtype",
          [](const FeatureDescription& f) -> std::optional<std::string> {
            if (f.type != FeatureType::multi_array && f.type != FeatureType::state) return std::nullopt;
            return std::string(to_string(f.array.type));
          },
          "numpy's name of the element type; None unless the feature is a multi-array.")
      .def_prop_ro(
          "shape", [](const FeatureDescription& f) { return shape_of(f.array.shape); },
          "The default shape; empty when the model does not say.")
      .def_prop_ro(
          "shape_ranges",
          [](const FeatureDescription& f) {
            std::vector<std::pair<int64_t, int64_t>> out;
            for (const SizeRange& r : f.array.ranges) out.emplace_back(r.lower, r.upper);
            return out;
          },
          "(lower, upper) of each dimension, upper -1 when unbounded; empty when the shape is fixed.")
      .def_prop_ro(
          "enumerated_shapes",
          [](const FeatureDescription& f) {
            nb::typed<nb::list, Shape> out;
            for (const auto& s : f.array.enumerated) out.append(shape_of(s));
            return out;
          },
          "The allowed shapes; empty when they are not enumerated.")
      .def_prop_ro(
          "image_size", [](const FeatureDescription& f) { return std::pair(f.image.width, f.image.height); },
          "(width, height) in pixels.")
      .def_prop_ro(
          "color_space", [](const FeatureDescription& f) { return name_of(f.image.color); },
          "'rgb', 'bgr', 'grayscale' or 'grayscale_float16'.")
      .def_prop_ro(
          "key_type", [](const FeatureDescription& f) { return f.string_keys ? "str" : "int"; },
          "The type of a dictionary's keys or of a sequence's elements.")
      .def("__repr__", [](const FeatureDescription& f) { return f.name + ": " + f.formatted_type(); });

  nb::class_<FunctionDescription>(m, "FunctionDescription", "Inputs, outputs and states of one function.")
      .def_ro("name", &FunctionDescription::name)
      .def_ro("inputs", &FunctionDescription::inputs)
      .def_ro("outputs", &FunctionDescription::outputs)
      .def_ro("states", &FunctionDescription::states)
      .def_ro("predicted_feature_name", &FunctionDescription::predicted_feature_name)
      .def_ro("predicted_probabilities_name", &FunctionDescription::predicted_probabilities_name);

  bind_update_description(m);
  nb::class_<ModelDescription>(m, "ModelDescription", "Core ML's MLModelDescription.")
      .def_ro("type", &ModelDescription::type, "'mlProgram', 'neuralNetwork', 'pipelineClassifier', ...")
      .def_ro("specification_version", &ModelDescription::specification_version)
      .def_ro("functions", &ModelDescription::functions)
      .def_ro("default_function", &ModelDescription::default_function)
      .def_prop_ro("class_labels",
                   [](const ModelDescription& d) {
                     List out;
                     for (const auto& label : d.class_labels) {
                       if (d.int64_labels)
                         out.append(nb::int_(std::stoll(label)));
                       else
                         out.append(nb::str(label.c_str(), label.size()));
                     }
                     return out;
                   })
      .def_ro("short_description", &ModelDescription::short_description)
      .def_ro("author", &ModelDescription::author)
      .def_ro("license", &ModelDescription::license)
      .def_ro("version", &ModelDescription::version)
      .def_ro("user_defined", &ModelDescription::user_defined)
      .def_ro("updatable", &ModelDescription::updatable)
      .def_prop_ro(
          "training_inputs",
          [](const ModelDescription& d) {
            return d.update ? d.update->training_inputs : std::vector<FeatureDescription>();
          },
          "What training reads; empty unless the model is updatable.")
      .def_prop_ro(
          "update",
          [](const ModelDescription& d) {
            if (d.update && !d.update->fault.empty())
              throw Exception(ErrorKind::malformed, "the model cannot be updated: " + d.update->fault);
            return d.update;
          },
          "What the model can learn; None unless it is updatable.");
}

}  // namespace moka::python
