// SPDX-License-Identifier: Apache-2.0
#include "compiler/generate/objective_c/writer.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/objective_c/fields.h"

namespace moka::compiler::objective_c {

std::string Writer::since(int version) const {
  return version > model.specification_version ? " " + available(version) : "";
}

std::vector<Field> Writer::required() const {
  std::vector<Field> out;
  std::copy_if(model.inputs.begin(), model.inputs.end(), std::back_inserter(out), is_required);
  return out.size() == model.inputs.size() ? std::vector<Field>{} : out;
}

const Field* Writer::only_image() const {
  const auto images = std::count_if(model.inputs.begin(), model.inputs.end(), is_image);
  return images == 1 ? &*std::find_if(model.inputs.begin(), model.inputs.end(), is_image) : nullptr;
}

Words Writer::words() const {
  return {{"class", model.class_name},
          {"available", available(model.specification_version)},
          {"error", std::string(error_parameter)},
          {"resource", literal(model.resource)},
          {"images", since(with_images)},
          {"loads", since(with_async_load)},
          {"awaits", since(with_async_prediction)},
          {"keeps", since(with_states)}};
}

std::string Writer::initializer(const std::vector<Field>& fields) const {
  return fields.empty() ? "- (instancetype)init" : "- (instancetype)" + declared("initWith", fields);
}

std::string Writer::picture_initializers(
    const std::function<std::string(const std::vector<Field>&, const char* selector)>& body) const {
  const Field* image = only_image();
  if (image == nullptr) return "";
  std::string out;
  for (const auto& fields : {required(), model.inputs}) {
    if (std::none_of(fields.begin(), fields.end(), is_image)) continue;
    for (const char* source : {"CGImage", "URL"}) {
      const bool url = source[0] == 'U';
      const auto argument = [&](const Field& f) {
        return cat("(", !is_image(f) ? parameter_type(f) : url ? "NSURL *" : "CGImageRef", ")", f.identifier);
      };
      out += cat(selector("- (nullable instancetype)initWith", fields, argument, url ? "AtURL" : "FromCGImage"),
                 " error:", error_parameter);
      out += body(fields, source);
    }
  }
  return out;
}

std::string Writer::picture_value(const char* source) const {
  const Field& f = *only_image();
  const bool gray = f.feature.image.color == import::ColorSpace::grayscale;
  return cat("[MLFeatureValue featureValueWith", source[0] == 'U' ? "ImageAtURL" : "CGImage", ":", f.identifier,
             " pixelsWide:", f.feature.image.width, " pixelsHigh:", f.feature.image.height,
             " pixelFormatType:", gray ? "kCVPixelFormatType_OneComponent8" : "kCVPixelFormatType_32ARGB",
             " options:nil error:error]");
}

std::string Writer::picture_setters(const std::function<std::string(const char* source)>& body) const {
  if (only_image() == nullptr) return "";
  const Field& f = *only_image();
  std::string out;
  for (const char* source : {"CGImage", "URL"})
    out +=
        cat("- (BOOL)set", capitalized(f.identifier), "With", source, ":(", source[0] == 'U' ? "NSURL *" : "CGImageRef",
            ")", f.identifier, " error:", error_parameter, body(source));
  return out;
}

}  // namespace moka::compiler::objective_c
