// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/objective_c/fields.h"
#include "compiler/generate/objective_c/writer.h"

namespace moka::compiler::objective_c {

std::string Writer::assignments(const std::vector<Field>& fields) const {
  return each(fields, "", [](const Field& f) {
    return cat("        _", f.identifier, " = ",
               is_image(f) ? cat("CVPixelBufferRetain(", f.identifier, ")") : f.identifier, ";\n");
  });
}

std::string Writer::image_members(const std::vector<Field>& fields) const {
  std::string out, released;
  for (const Field& f : fields) {
    if (!is_image(f)) continue;
    released += cat("    CVPixelBufferRelease(_", f.identifier, ");\n");
    out += fill(R"(
- (void)set$Name$:(CVPixelBufferRef)$name$ {
    CVPixelBufferRetain($name$);
    CVPixelBufferRelease(_$name$);
    _$name$ = $name$;
}
)",
                {{"name", f.identifier}, {"Name", capitalized(f.identifier)}});
  }
  return released.empty() ? "" : out + "\n- (void)dealloc {\n" + released + "}\n";
}

std::string Writer::provider(const char* suffix, const std::vector<Field>& fields, const std::string& more) const {
  Words w = words();
  w["suffix"] = suffix;
  w["initializer"] = initializer(fields);
  w["assignments"] = assignments(fields);
  w["images"] = image_members(fields);
  w["more"] = more;
  w["names"] = each(fields, ", ", [](const Field& f) { return "@" + literal(f.feature.name); });
  w["values"] = each(fields, "", [](const Field& f) {
    const bool check = f.feature.optional;
    return cat("    if ([featureName isEqualToString:@", literal(f.feature.name), "]) {\n        return ",
               check ? cat("self.", f.identifier, is_image(f) ? " == NULL ? nil : " : " == nil ? nil : ") : "",
               feature_value(f), ";\n    }\n");
  });
  return fill(R"(
@implementation $class$$suffix$

$initializer$ {
    self = [super init];
    if (self) {
$assignments$    }
    return self;
}
$more$$images$
- (NSSet<NSString *> *)featureNames {
    return [NSSet setWithArray:@[$names$]];
}

- (nullable MLFeatureValue *)featureValueForName:(NSString *)featureName {
$values$    return nil;
}

@end
)",
              w);
}

std::string Writer::input_implementation() const {
  std::string more;
  if (!required().empty())
    more += cat("\n", initializer(required()), " {\n    return [self ",
                selector("initWith", model.inputs,
                         [](const Field& f) { return f.feature.optional ? std::string("nil") : f.identifier; }),
                "];\n}\n");
  more += picture_initializers([&](const std::vector<Field>& fields, const char* source) {
    return cat(" {\n    MLFeatureValue *picture_value_ = ", picture_value(source),
               ";\n    if (picture_value_ == nil) { return nil; }\n    return [self ",
               selector("initWith", fields,
                        [](const Field& f) {
                          return is_image(f) ? std::string("(CVPixelBufferRef)picture_value_.imageBufferValue")
                                             : f.identifier;
                        }),
               "];\n}\n");
  });
  more += picture_setters([&](const char* source) {
    return cat(" {\n    MLFeatureValue *picture_value_ = ", picture_value(source),
               ";\n    if (picture_value_ == nil) { return NO; }\n    self.", only_image()->identifier,
               " = (CVPixelBufferRef)picture_value_.imageBufferValue;\n    return YES;\n}\n");
  });
  return provider("Input", model.inputs, more);
}

}  // namespace moka::compiler::objective_c
