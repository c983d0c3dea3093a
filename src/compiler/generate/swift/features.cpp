// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "base/error.h"
#include "compiler/generate/swift/fields.h"
#include "compiler/generate/swift/writer.h"

namespace moka::compiler::swift {

std::string Writer::image_conversion(const Field& f, const char* label) const {
  const bool gray = f.feature.image.color == import::ColorSpace::grayscale;
  const bool half = f.feature.image.color == import::ColorSpace::grayscale_float16;
  return cat("try MLFeatureValue(", label, ": ", f.identifier, ", pixelsWide: ", f.feature.image.width,
             ", pixelsHigh: ", f.feature.image.height, ", pixelFormatType: ",
             gray   ? "kCVPixelFormatType_OneComponent8"
             : half ? "kCVPixelFormatType_OneComponent16Half"
                    : "kCVPixelFormatType_32ARGB",
             ", options: nil).imageBufferValue!");
}

std::string Writer::image_members() const {
  std::string out;
  for (const auto& [label, suffix, type] : {std::tuple{"cgImage", "With", "CGImage"}, {"imageAt", "At", "URL"}}) {
    if (std::none_of(model.inputs.begin(), model.inputs.end(), is_image)) break;
    Words w = words();
    w["since"] = since(with_images).empty() ? "" : "    " + since(with_images);
    w["parameters"] = each(model.inputs, ", ", [&, suffix = suffix, type = type](const Field& f) {
      if (!is_image(f)) return cat(f.identifier, ": ", type_of(f), f.feature.optional ? " = nil" : "");
      return cat(f.identifier, suffix, " ", f.identifier, ": ", type);
    });
    w["values"] = each(model.inputs, ", ", [&, label = label](const Field& f) {
      return cat(f.identifier, ": ", is_image(f) ? image_conversion(f, label) : f.identifier);
    });
    out += fill(R"(
$since$
    $access$convenience init($parameters$) throws {
        self.init($values$)
    }
)",
                w);
  }
  for (const Field& f : model.inputs) {
    if (!is_image(f)) continue;
    for (const auto& [label, type] : {std::pair{"cgImage", "CGImage"}, {"imageAt", "URL"}}) {
      Words w = words();
      w["since"] = since(with_images).empty() ? "" : "    " + since(with_images);
      w["name"] = f.identifier;
      w["Name"] = capitalized(f.identifier);
      w["type"] = type;
      w["value"] = image_conversion(f, label);
      out += fill(R"(
$since$
    $access$func set$Name$(with $name$: $type$) throws {
        self.$name$ = $value$
    }
)",
                  w);
    }
  }
  return out;
}

std::string Writer::input() const {
  Words w = words();
  w["objc"] = objc_name("Input");
  w["properties"] = each(model.inputs, "", [&](const Field& f) {
    return cat("\n    /// ", documentation(f), "\n    ", access(), "var ", f.identifier, ": ", type_of(f),
               f.feature.optional ? " = nil\n" : "\n");
  });
  w["names"] = each(model.inputs, ", ", [](const Field& f) { return literal(f.feature.name, true); });
  w["values"] = each(model.inputs, "", [](const Field& f) {
    return cat("        if featureName == ", literal(f.feature.name, true), " {\n            return ",
               f.feature.optional ? cat(f.identifier, ".map { ", feature_value(f, "$0"), " }")
                                  : feature_value(f, f.identifier),
               "\n        }\n");
  });
  w["assignments"] = each(model.inputs, "",
                          [](const Field& f) { return cat("        self.", f.identifier, " = ", f.identifier, "\n"); });
  w["images"] = image_members();
  w["shaped"] = "";
  if (takes_arrays()) {
    Words s = words();
    s["parameters"] = parameters(true, true);
    s["attribute"] = shaped_inputs_attribute();
    s["values"] = each(model.inputs, ", ", [](const Field& f) {
      const std::string& name = f.identifier;
      if (!is_array(f)) return cat(name, ": ", name);
      return f.feature.optional ? cat(name, ": ", name, ".map { MLMultiArray($0) }")
                                : cat(name, ": MLMultiArray(", name, ")");
    });
    w["shaped"] = fill(R"(
$attribute$    $access$convenience init($parameters$) {
        self.init($values$)
    }
)",
                       s);
  }
  return fill(R"(
/// The model's inputs
$available$
$objc$$access$class $class$Input : $base$ {
$properties$
    $access$var featureNames: Set<String> { [$names$] }

    $access$func featureValue(for featureName: String) -> MLFeatureValue? {
$values$        return nil
    }

    $access$init($parameters$) {
$assignments$    }
$images$$shaped$}

)",
              w);
}

std::string Writer::output() const {
  Words w = words();
  w["objc"] = objc_name("Output");
  w["properties"] = each(model.outputs, "", [&](const Field& f) {
    const std::string comment = cat("\n    /// ", documentation(f), "\n");
    std::string out = cat(comment, "    ", access(), "var ", f.identifier, ": ", bare_type(f), " {\n        ",
                          value_of(f), "\n    }\n");
    if (is_array(f))
      out +=
          cat(comment, shaped_attribute(element(f) == "Float16"), "    ", access(), "var ", f.identifier,
              "ShapedArray: ", bare_type(f, true), " {\n        ", bare_type(f, true), "(", f.identifier, ")\n    }\n");
    return out;
  });
  w["parameters"] = each(model.outputs, ", ", [](const Field& f) { return cat(f.identifier, ": ", bare_type(f)); });
  w["values"] = each(model.outputs, ", ", [](const Field& f) {
    return cat(literal(f.feature.name, true), " : ", feature_value(f, f.identifier));
  });
  if (model.outputs.empty()) w["values"] = ":";
  return fill(R"(
/// The model's outputs
$available$
$objc$$access$class $class$Output : $base$ {

    /// What the model returned
    private let provider : $any$MLFeatureProvider
$properties$
    $access$var featureNames: Set<String> {
        provider.featureNames
    }

    $access$func featureValue(for featureName: String) -> MLFeatureValue? {
        provider.featureValue(for: featureName)
    }

    $access$init($parameters$) {
        self.provider = try! MLDictionaryFeatureProvider(dictionary: [$values$])
    }

    $access$init(features: $any$MLFeatureProvider) {
        self.provider = features
    }
}

)",
              w);
}

}  // namespace moka::compiler::swift
