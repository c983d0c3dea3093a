#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/source.h"
#include "compiler/metadata.h"

namespace moka::compiler {
namespace {

using import::FeatureKind;

constexpr std::string_view objective_c_reserved[] = {"BOOL",
                                                     "_Bool",
                                                     "false",
                                                     "true",
                                                     "NO",
                                                     "NULL",
                                                     "YES",
                                                     "asm",
                                                     "auto",
                                                     "bool",
                                                     "break",
                                                     "case",
                                                     "char",
                                                     "class",
                                                     "configuration",
                                                     "const",
                                                     "continue",
                                                     "copy",
                                                     "default",
                                                     "description",
                                                     "do",
                                                     "double",
                                                     "else",
                                                     "enum",
                                                     "error",
                                                     "extern",
                                                     "featureNames",
                                                     "float",
                                                     "for",
                                                     "goto",
                                                     "hash",
                                                     "id",
                                                     "if",
                                                     "in",
                                                     "init",
                                                     "inline",
                                                     "input_",
                                                     "inout",
                                                     "int",
                                                     "long",
                                                     "model",
                                                     "nil",
                                                     "oneway",
                                                     "options",
                                                     "out",
                                                     "register",
                                                     "restrict",
                                                     "return",
                                                     "self",
                                                     "short",
                                                     "signed",
                                                     "sizeof",
                                                     "static",
                                                     "struct",
                                                     "super",
                                                     "superclass",
                                                     "switch",
                                                     "typedef",
                                                     "typeof",
                                                     "union",
                                                     "unsigned",
                                                     "void",
                                                     "volatile",
                                                     "while",
                                                     "new",
                                                     "alloc",
                                                     "retain",
                                                     "release",
                                                     "state",
                                                     "completionHandler",
                                                     "CGImageRef",
                                                     "CVPixelBufferRef",
                                                     "NSArray",
                                                     "NSBundle",
                                                     "NSDictionary",
                                                     "NSError",
                                                     "NSSet",
                                                     "NSString",
                                                     "NSURL",
                                                     "autorelease",
                                                     "dealloc",
                                                     "finalize",
                                                     "linux",
                                                     "retainCount",
                                                     "unix"};

constexpr std::string_view error_parameter = "(NSError * _Nullable __autoreleasing * _Nullable)error";

std::string objective_c_available(int version) {
  const Systems& s = systems_of(version);
  return cat("API_AVAILABLE(macos(", s.macos, "), ios(", s.ios, "), watchos(", s.watchos, "), tvos(", s.tvos,
             ")) __attribute__((visibility(\"hidden\")))");
}

std::string capitalized(std::string name) {
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

bool is_scalar(const Field& f) {
  return f.feature.kind == FeatureKind::int64 || f.feature.kind == FeatureKind::float64;
}
bool is_image(const Field& f) { return f.feature.kind == FeatureKind::image; }
bool is_required(const Field& f) { return !f.feature.optional; }

/// The type without its nullability.
std::string objective_c_type(const Field& f) {
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

std::string parameter_type(const Field& f) { return (f.feature.optional ? "nullable " : "") + objective_c_type(f); }

/// Whether the compiler assumes that a getter of this name transfers ownership: "new_state", "copyOf".
bool names_an_owned_object(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  for (std::string_view family : {"alloc", "copy", "init", "mutableCopy", "new"})
    if (name.starts_with(family) &&
        (name.size() == family.size() || std::islower(static_cast<unsigned char>(name[family.size()])) == 0))
      return true;
  return false;
}

std::string property(const Field& f) {
  std::string attributes = "readwrite, nonatomic";
  if (f.feature.optional) attributes += ", nullable";
  if (!is_image(f) && (f.feature.optional || !is_scalar(f))) attributes += ", strong";
  std::string out = cat("/// ", documentation(f), "\n@property (", attributes, ") ", objective_c_type(f),
                        objective_c_type(f).ends_with('*') ? "" : " ", f.identifier, ";\n");
  const bool object = objective_c_type(f).ends_with('*');
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

/// The value of an output in `provider`.
std::string value_in(const Field& f, const char* provider) {
  const std::string value = cat("[", provider, " featureValueForName:@", literal(f.feature.name), "].");
  switch (f.feature.kind) {
    case FeatureKind::int64: return value + "int64Value";
    case FeatureKind::float64: return value + "doubleValue";
    case FeatureKind::string: return value + "stringValue";
    case FeatureKind::image: return cat("(CVPixelBufferRef)", value, "imageBufferValue");
    case FeatureKind::dictionary: return cat("(", objective_c_type(f), ")", value, "dictionaryValue");
    case FeatureKind::sequence: return cat("(MLSequence *)", value, "sequenceValue");
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return cat("(MLMultiArray *)", value, "multiArrayValue");
}

/// "WithX:(T)x y:(U)y". The first part of a selector ends in the first name. `image_suffix` follows the names of
/// images.
std::string selector(std::string_view begin, const std::vector<Field>& fields,
                     const std::function<std::string(const Field&)>& argument, std::string_view image_suffix = "") {
  std::string out(begin);
  for (const Field& f : fields)
    out += cat(&f == fields.data() ? capitalized(f.identifier) : " " + f.identifier,
               is_image(f) ? image_suffix : std::string_view(), ":", argument(f));
  return out;
}

std::string objective_c_declared(std::string_view begin, const std::vector<Field>& fields) {
  return selector(begin, fields, [](const Field& f) { return cat("(", parameter_type(f), ")", f.identifier); });
}

std::string called(std::string_view begin, const std::vector<Field>& fields) {
  return selector(begin, fields, [](const Field& f) { return f.identifier; });
}

struct ObjectiveCWriter {
  Interface model;

  std::string since(int version) const {
    return version > model.specification_version ? " " + objective_c_available(version) : "";
  }

  /// The inputs that need a value, when others do not.
  std::vector<Field> required() const {
    std::vector<Field> out;
    std::copy_if(model.inputs.begin(), model.inputs.end(), std::back_inserter(out), is_required);
    return out.size() == model.inputs.size() ? std::vector<Field>{} : out;
  }

  const Field* only_image() const {
    const auto images = std::count_if(model.inputs.begin(), model.inputs.end(), is_image);
    return images == 1 ? &*std::find_if(model.inputs.begin(), model.inputs.end(), is_image) : nullptr;
  }

  Words words() const {
    return {{"class", model.class_name},
            {"available", objective_c_available(model.specification_version)},
            {"error", std::string(error_parameter)},
            {"resource", literal(model.resource)},
            {"images", since(with_images)},
            {"loads", since(with_async_load)},
            {"awaits", since(with_async_prediction)},
            {"keeps", since(with_states)}};
  }

  std::string initializer(const std::vector<Field>& fields) const {
    return fields.empty() ? "- (instancetype)init" : "- (instancetype)" + objective_c_declared("initWith", fields);
  }

  /// Initializers that take a picture for the only image. `body` writes the rest of each.
  std::string picture_initializers(
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

  std::string picture_value(const char* source) const {
    const Field& f = *only_image();
    const bool gray = f.feature.image.color == import::ColorSpace::grayscale;
    return cat("[MLFeatureValue featureValueWith", source[0] == 'U' ? "ImageAtURL" : "CGImage", ":", f.identifier,
               " pixelsWide:", f.feature.image.width, " pixelsHigh:", f.feature.image.height,
               " pixelFormatType:", gray ? "kCVPixelFormatType_OneComponent8" : "kCVPixelFormatType_32ARGB",
               " options:nil error:error]");
  }

  std::string picture_setters(const std::function<std::string(const char* source)>& body) const {
    if (only_image() == nullptr) return "";
    const Field& f = *only_image();
    std::string out;
    for (const char* source : {"CGImage", "URL"})
      out +=
          cat("- (BOOL)set", capitalized(f.identifier), "With", source, ":(",
              source[0] == 'U' ? "NSURL *" : "CGImageRef", ")", f.identifier, " error:", error_parameter, body(source));
    return out;
  }

  std::string input_interface() const {
    Words w = words();
    w["properties"] = each(model.inputs, "", property);
    w["unavailable"] = model.inputs.empty() ? "" : "- (instancetype)init NS_UNAVAILABLE;";
    w["required"] = required().empty() ? "" : initializer(required()) + ";";
    w["initializer"] = initializer(model.inputs);
    w["pictures"] = picture_initializers([&](const auto&, const char*) { return since(with_images) + ";\n"; }) +
                    picture_setters([&](const char*) { return since(with_images) + ";\n"; });
    return fill(R"(
/// The model's inputs
$available$
@interface $class$Input : NSObject<MLFeatureProvider>

$properties$$unavailable$
$required$
$initializer$ NS_DESIGNATED_INITIALIZER;
$pictures$
@end

)",
                w);
  }

  std::string output_interface() const {
    Words w = words();
    w["properties"] = each(model.outputs, "", property);
    w["initializer"] = initializer(model.outputs);
    return fill(R"(
/// The model's outputs
$available$
@interface $class$Output : NSObject<MLFeatureProvider>

$properties$- (instancetype)init NS_UNAVAILABLE;
$initializer$ NS_DESIGNATED_INITIALIZER;

@end

)",
                w);
  }

  std::string model_interface() const {
    Words w = words();
    w["summary"] = model.summary.empty() ? "" : cat("/// ", model.summary, " (", model.resource, ")");
    w["states"] = model.states.empty() ? ""
                                       : fill(R"(
/// New buffers for predictions that keep states, filled with zeros
- (MLState *)newState$keeps$;

/// Predicts with buffers of newState, which it changes
- (nullable $class$Output *)predictionFromFeatures:($class$Input *)input usingState:(MLState *)state error:$error$$keeps$;
- (nullable $class$Output *)predictionFromFeatures:($class$Input *)input usingState:(MLState *)state options:(MLPredictionOptions *)options error:$error$$keeps$;
- (void)predictionFromFeatures:($class$Input *)input usingState:(MLState *)state options:(MLPredictionOptions *)options completionHandler:(void (^)($class$Output * _Nullable output, NSError * _Nullable error))completionHandler$keeps$;
)",
                                              w);
    w["convenience"] =
        model.inputs.empty()
            ? ""
            : cat("\n/// Predicts from the values of the inputs\n",
                  each(model.inputs, "",
                       [](const Field& f) { return cat("/// @param ", f.identifier, " ", documentation(f), "\n"); }),
                  "- (nullable ", model.class_name, "Output *)", objective_c_declared("predictionFrom", model.inputs),
                  " error:", error_parameter, ";\n");
    return fill(R"(
/// Loads the model and predicts
$summary$
$available$
@interface $class$ : NSObject
@property (readonly, nonatomic, nullable) MLModel * model;

/// Where the model is when it lies in the bundle of this class
+ (nullable NSURL *)URLOfModelInThisBundle;

/// Wraps a model that is loaded already
- (instancetype)initWithMLModel:(MLModel *)model NS_DESIGNATED_INITIALIZER;

/// Loads the model of this bundle
- (nullable instancetype)init;
- (nullable instancetype)initWithConfiguration:(MLModelConfiguration *)configuration error:$error$;

/// Loads a compiled model
- (nullable instancetype)initWithContentsOfURL:(NSURL *)modelURL error:$error$;
- (nullable instancetype)initWithContentsOfURL:(NSURL *)modelURL configuration:(MLModelConfiguration *)configuration error:$error$;

/// Loads the model of this bundle, or a compiled one, and then calls the handler
+ (void)loadWithConfiguration:(MLModelConfiguration *)configuration completionHandler:(void (^)($class$ * _Nullable model, NSError * _Nullable error))handler$loads$;
+ (void)loadContentsOfURL:(NSURL *)modelURL configuration:(MLModelConfiguration *)configuration completionHandler:(void (^)($class$ * _Nullable model, NSError * _Nullable error))handler$loads$;

/// Predicts with the default function
- (nullable $class$Output *)predictionFromFeatures:($class$Input *)input error:$error$;
- (nullable $class$Output *)predictionFromFeatures:($class$Input *)input options:(MLPredictionOptions *)options error:$error$;

/// Predicts asynchronously and then calls the handler
- (void)predictionFromFeatures:($class$Input *)input completionHandler:(void (^)($class$Output * _Nullable output, NSError * _Nullable error))completionHandler$awaits$;
- (void)predictionFromFeatures:($class$Input *)input options:(MLPredictionOptions *)options completionHandler:(void (^)($class$Output * _Nullable output, NSError * _Nullable error))completionHandler$awaits$;
$states$$convenience$
/// Predicts for each of the inputs
- (nullable NSArray<$class$Output *> *)predictionsFromInputs:(NSArray<$class$Input *> *)inputArray options:(MLPredictionOptions *)options error:$error$;
@end
)",
                w);
  }

  std::string assignments(const std::vector<Field>& fields) const {
    return each(fields, "", [](const Field& f) {
      return cat("        _", f.identifier, " = ",
                 is_image(f) ? cat("CVPixelBufferRetain(", f.identifier, ")") : f.identifier, ";\n");
    });
  }

  /// An image is owned by the object that holds it, since the property is not an object.
  std::string image_members(const std::vector<Field>& fields) const {
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

  std::string provider(const char* suffix, const std::vector<Field>& fields, const std::string& more) const {
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

  std::string input_implementation() const {
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

  std::string output_from(const char* provider) const {
    return cat("[[", model.class_name, "Output alloc] ",
               model.outputs.empty()
                   ? "init"
                   : selector("initWith", model.outputs, [&](const Field& f) { return value_in(f, provider); }),
               "]");
  }

  std::string states() const {
    if (model.states.empty()) return "";
    Words w = words();
    w["output"] = output_from("outFeatures");
    return fill(R"(
- (MLState *)newState {
    return [self.model newState];
}

- (nullable $class$Output *)predictionFromFeatures:($class$Input *)input usingState:(MLState *)state error:$error$ {
    return [self predictionFromFeatures:input usingState:state options:[[MLPredictionOptions alloc] init] error:error];
}

- (nullable $class$Output *)predictionFromFeatures:($class$Input *)input usingState:(MLState *)state options:(MLPredictionOptions *)options error:$error$ {
    id<MLFeatureProvider> outFeatures = [self.model predictionFromFeatures:input usingState:state options:options error:error];
    if (!outFeatures) { return nil; }
    return $output$;
}

- (void)predictionFromFeatures:($class$Input *)input usingState:(MLState *)state options:(MLPredictionOptions *)options completionHandler:(void (^)($class$Output * _Nullable output, NSError * _Nullable error))completionHandler {
    [self.model predictionFromFeatures:input usingState:state options:options completionHandler:^(id<MLFeatureProvider> outFeatures, NSError *error) {
        completionHandler(outFeatures == nil ? nil : $output$, error);
    }];
}
)",
                w);
  }

  std::string convenience() const {
    if (model.inputs.empty()) return "";
    return cat("\n- (nullable ", model.class_name, "Output *)", objective_c_declared("predictionFrom", model.inputs),
               " error:", error_parameter, " {\n    ", model.class_name, "Input *input_ = [[", model.class_name,
               "Input alloc] ", called("initWith", model.inputs),
               "];\n    return [self predictionFromFeatures:input_ error:error];\n}\n");
  }

  std::string model_implementation() const {
    Words w = words();
    w["output"] = output_from("outFeatures");
    w["states"] = states();
    w["convenience"] = convenience();
    return fill(R"(
@implementation $class$

+ (nullable NSURL *)URLOfModelInThisBundle {
    NSString *assetPath = [[NSBundle bundleForClass:[self class]] pathForResource:@$resource$ ofType:@"mlmodelc"];
    if (nil == assetPath) {
        os_log_error(OS_LOG_DEFAULT, "The bundle lacks the compiled model of $class$");
        return nil;
    }
    return [NSURL fileURLWithPath:assetPath];
}

- (instancetype)initWithMLModel:(MLModel *)model {
    if (model == nil) { return nil; }
    self = [super init];
    if (self != nil) {
        _model = model;
    }
    return self;
}

- (nullable instancetype)init {
    return [self initWithContentsOfURL:(NSURL * _Nonnull)self.class.URLOfModelInThisBundle error:nil];
}

- (nullable instancetype)initWithConfiguration:(MLModelConfiguration *)configuration error:$error$ {
    return [self initWithContentsOfURL:(NSURL * _Nonnull)self.class.URLOfModelInThisBundle configuration:configuration error:error];
}

- (nullable instancetype)initWithContentsOfURL:(NSURL *)modelURL error:$error$ {
    MLModel *model = [MLModel modelWithContentsOfURL:modelURL error:error];
    if (model == nil) { return nil; }
    return [self initWithMLModel:model];
}

- (nullable instancetype)initWithContentsOfURL:(NSURL *)modelURL configuration:(MLModelConfiguration *)configuration error:$error$ {
    MLModel *model = [MLModel modelWithContentsOfURL:modelURL configuration:configuration error:error];
    if (model == nil) { return nil; }
    return [self initWithMLModel:model];
}

+ (void)loadWithConfiguration:(MLModelConfiguration *)configuration completionHandler:(void (^)($class$ * _Nullable model, NSError * _Nullable error))handler {
    [self loadContentsOfURL:(NSURL * _Nonnull)[self URLOfModelInThisBundle] configuration:configuration completionHandler:handler];
}

+ (void)loadContentsOfURL:(NSURL *)modelURL configuration:(MLModelConfiguration *)configuration completionHandler:(void (^)($class$ * _Nullable model, NSError * _Nullable error))handler {
    [MLModel loadContentsOfURL:modelURL configuration:configuration completionHandler:^(MLModel *model, NSError *error) {
        handler(model == nil ? nil : [[$class$ alloc] initWithMLModel:model], error);
    }];
}

- (nullable $class$Output *)predictionFromFeatures:($class$Input *)input error:$error$ {
    return [self predictionFromFeatures:input options:[[MLPredictionOptions alloc] init] error:error];
}

- (nullable $class$Output *)predictionFromFeatures:($class$Input *)input options:(MLPredictionOptions *)options error:$error$ {
    id<MLFeatureProvider> outFeatures = [self.model predictionFromFeatures:input options:options error:error];
    if (!outFeatures) { return nil; }
    return $output$;
}

- (void)predictionFromFeatures:($class$Input *)input completionHandler:(void (^)($class$Output * _Nullable output, NSError * _Nullable error))completionHandler {
    [self predictionFromFeatures:input options:[[MLPredictionOptions alloc] init] completionHandler:completionHandler];
}

- (void)predictionFromFeatures:($class$Input *)input options:(MLPredictionOptions *)options completionHandler:(void (^)($class$Output * _Nullable output, NSError * _Nullable error))completionHandler {
    [self.model predictionFromFeatures:input options:options completionHandler:^(id<MLFeatureProvider> outFeatures, NSError *error) {
        completionHandler(outFeatures == nil ? nil : $output$, error);
    }];
}
$states$$convenience$
- (nullable NSArray<$class$Output *> *)predictionsFromInputs:(NSArray<$class$Input *> *)inputArray options:(MLPredictionOptions *)options error:$error$ {
    id<MLBatchProvider> inBatch = [[MLArrayBatchProvider alloc] initWithFeatureProviderArray:inputArray];
    id<MLBatchProvider> outBatch = [self.model predictionsFromBatch:inBatch options:options error:error];
    if (!outBatch) { return nil; }
    NSMutableArray<$class$Output *> *results = [NSMutableArray arrayWithCapacity:(NSUInteger)outBatch.count];
    for (NSInteger i = 0; i < outBatch.count; i++) {
        id<MLFeatureProvider> outFeatures = [outBatch featuresAtIndex:i];
        [results addObject:$output$];
    }
    return results;
}

@end
)",
                w);
  }
};

}  // namespace

Sources write_objective_c(const import::ModelDescription& description, const std::string& model_name) {
  const ObjectiveCWriter writer{
      describe_interface(description, model_name, {true, objective_c_reserved, core_ml_types})};
  const std::string& name = writer.model.class_name;
  const auto head = [&](const char* extension) {
    return cat("//\n// ", name, extension, "\n//\n// Generated from the model; edits are lost.\n//\n\n");
  };
  return {{name + ".h", cat(head(".h"),
                            "#import <Foundation/Foundation.h>\n#import <CoreML/CoreML.h>\n#include <stdint.h>\n"
                            "#include <os/log.h>\n\nNS_ASSUME_NONNULL_BEGIN\n",
                            writer.input_interface(), writer.output_interface(), writer.model_interface(),
                            "\nNS_ASSUME_NONNULL_END\n")},
          {name + ".m", cat(head(".m"),
                            "#if !__has_feature(objc_arc)\n#error This file needs automatic reference counting "
                            "(-fobjc-arc)\n#endif\n\n#import \"",
                            name, ".h\"\n", writer.input_implementation(),
                            writer.provider("Output", writer.model.outputs, ""), writer.model_implementation())}};
}

}  // namespace moka::compiler
