// SPDX-License-Identifier: Apache-2.0
#include "compiler/generate/objective_c/fields.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "compiler/metadata.h"

namespace moka::compiler::objective_c {

using import::FeatureKind;

namespace {

bool is_scalar(const Field& f) {
  return f.feature.kind == FeatureKind::int64 || f.feature.kind == FeatureKind::float64;
}

/// Whether the compiler assumes that a getter of this name transfers ownership: "new_state", "copyOf".
bool names_an_owned_object(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  for (std::string_view family : {"alloc", "copy", "init", "mutableCopy", "new"})
    if (name.starts_with(family) &&
        (name.size() == family.size() || std::islower(static_cast<unsigned char>(name[family.size()])) == 0))
      return true;
  return false;
}

}  // namespace

std::string available(int version) {
  const Systems& s = systems_of(version);
  return cat("API_AVAILABLE(macos(", s.macos, "), ios(", s.ios, "), watchos(", s.watchos, "), tvos(", s.tvos,
             ")) __attribute__((visibility(\"hidden\")))");
}

bool is_required(const Field& f) { return !f.feature.optional; }

std::string type_of(const Field& f) {
  switch (f.feature.kind) {
    case FeatureKind::int64: return f.feature.optional ? "NSNumber *" : "int64_t";
    case FeatureKind::float64: return f.feature.optional ? "NSNumber *" : "double";
    case FeatureKind::string: return "NSString *";
    case FeatureKind::image: return "CVPixelBufferRef";
    case FeatureKind::dictionary:
      return f.feature.string_keys ? "NSDictionary<NSString *, NSNumber *> *"
                                   : "NSDictionary<NSNumber *, NSNumber *> *";
    case FeatureKind::sequence: return "MLSequence *";
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return "MLMultiArray *";
}

std::string parameter_type(const Field& f) { return (f.feature.optional ? "nullable " : "") + type_of(f); }

std::string property(const Field& f) {
  std::string attributes = "readwrite, nonatomic";
  if (f.feature.optional) attributes += ", nullable";
  if (!is_image(f) && (f.feature.optional || !is_scalar(f))) attributes += ", strong";
  std::string out = cat("/// ", documentation(f), "\n@property (", attributes, ") ", type_of(f),
                        type_of(f).ends_with('*') ? "" : " ", f.identifier, ";\n");
  const bool object = type_of(f).ends_with('*');
  if (object && names_an_owned_object(f.identifier))
    out += cat("- (", parameter_type(f), ")", f.identifier, " __attribute__((objc_method_family(none)));\n");
  return out;
}

std::string feature_value(const Field& f) {
  const std::string value = "self." + f.identifier;
  const auto made = [&](const char* selector, const std::string& argument) {
    return cat("[MLFeatureValue featureValueWith", selector, ":", argument, "]");
  };
  switch (f.feature.kind) {
    case FeatureKind::int64: return made("Int64", f.feature.optional ? value + ".longLongValue" : value);
    case FeatureKind::float64: return made("Double", f.feature.optional ? value + ".doubleValue" : value);
    case FeatureKind::string: return made("String", value);
    case FeatureKind::image: return made("PixelBuffer", value);
    case FeatureKind::dictionary: return cat("[MLFeatureValue featureValueWithDictionary:", value, " error:nil]");
    case FeatureKind::sequence: return made("Sequence", value);
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return made("MultiArray", value);
}

std::string value_in(const Field& f, const char* provider) {
  const std::string value = cat("[", provider, " featureValueForName:@", literal(f.feature.name), "].");
  switch (f.feature.kind) {
    case FeatureKind::int64: return value + "int64Value";
    case FeatureKind::float64: return value + "doubleValue";
    case FeatureKind::string: return value + "stringValue";
    case FeatureKind::image: return cat("(CVPixelBufferRef)", value, "imageBufferValue");
    case FeatureKind::dictionary: return cat("(", type_of(f), ")", value, "dictionaryValue");
    case FeatureKind::sequence: return cat("(MLSequence *)", value, "sequenceValue");
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return cat("(MLMultiArray *)", value, "multiArrayValue");
}

std::string selector(std::string_view begin, const std::vector<Field>& fields,
                     const std::function<std::string(const Field&)>& argument, std::string_view image_suffix) {
  std::string out(begin);
  for (const Field& f : fields)
    out += cat(&f == fields.data() ? capitalized(f.identifier) : " " + f.identifier,
               is_image(f) ? image_suffix : std::string_view(), ":", argument(f));
  return out;
}

std::string declared(std::string_view begin, const std::vector<Field>& fields) {
  return selector(begin, fields, [](const Field& f) { return cat("(", parameter_type(f), ")", f.identifier); });
}

std::string called(std::string_view begin, const std::vector<Field>& fields) {
  return selector(begin, fields, [](const Field& f) { return f.identifier; });
}

}  // namespace moka::compiler::objective_c
