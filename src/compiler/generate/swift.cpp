#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <tuple>

#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/source.h"
#include "compiler/metadata.h"

namespace moka::compiler {
namespace {

using import::FeatureKind;

constexpr std::string_view swift_reserved[] = {"Any",
                                               "Protocol",
                                               "Self",
                                               "Type",
                                               "actor",
                                               "any",
                                               "as",
                                               "associatedtype",
                                               "async",
                                               "await",
                                               "break",
                                               "case",
                                               "catch",
                                               "class",
                                               "continue",
                                               "default",
                                               "defer",
                                               "deinit",
                                               "do",
                                               "else",
                                               "enum",
                                               "extension",
                                               "fallthrough",
                                               "false",
                                               "func",
                                               "for",
                                               "guard",
                                               "if",
                                               "import",
                                               "in",
                                               "init",
                                               "inout",
                                               "internal",
                                               "is",
                                               "let",
                                               "nil",
                                               "open",
                                               "operator",
                                               "precedencegroup",
                                               "private",
                                               "protocol",
                                               "public",
                                               "repeat",
                                               "rethrows",
                                               "return",
                                               "self",
                                               "some",
                                               "static",
                                               "struct",
                                               "subscript",
                                               "super",
                                               "switch",
                                               "throw",
                                               "throws",
                                               "true",
                                               "try",
                                               "typealias",
                                               "var",
                                               "where",
                                               "while",
                                               "featureName",
                                               "featureNames",
                                               "features",
                                               "provider",
                                               "input_",
                                               "_",
                                               "CGImage",
                                               "CVPixelBuffer",
                                               "MLShapedArray"};

std::string swift_available(int version) {
  const auto s = systems_of(version);
  return cat("@available(macOS ", s.macos, ", iOS ", s.ios, ", tvOS ", s.tvos, ", watchOS ", s.watchos, ", visionOS ",
             s.visionos, ", *)");
}

struct SwiftWriter {
  Interface model;
  GenerateOptions options;

  std::string access() const { return options.public_access ? "public " : ""; }

  /// The availability attribute for features of systems later than the model's; empty otherwise.
  std::string since(int version) const { return version > model.specification_version ? swift_available(version) : ""; }

  static std::string element(const Field& f) {
    switch (f.feature.array.dtype) {
      case ir::DType::fp16: return "Float16";
      case ir::DType::fp64: return "Double";
      case ir::DType::int32: return "Int32";
      case ir::DType::int8: return "Int8";
      default: return "Float";
    }
  }

  static std::string bare_type(const Field& f, bool shaped = false) {
    switch (f.feature.kind) {
      case FeatureKind::int64: return "Int64";
      case FeatureKind::float64: return "Double";
      case FeatureKind::string: return "String";
      case FeatureKind::image: return "CVPixelBuffer";
      case FeatureKind::dictionary: return f.feature.string_keys ? "[String : Double]" : "[Int64 : Double]";
      case FeatureKind::sequence: return f.feature.string_keys ? "[String]" : "[Int64]";
      case FeatureKind::multi_array:
      case FeatureKind::state: break;
    }
    return shaped ? cat("MLShapedArray<", element(f), ">") : "MLMultiArray";
  }

  static std::string type(const Field& f, bool shaped = false) {
    return bare_type(f, shaped) + (f.feature.optional ? "?" : "");
  }

  /// An MLFeatureValue of `value`, which must be present.
  static std::string feature_value(const Field& f, const std::string& value) {
    const bool strings = f.feature.string_keys;
    switch (f.feature.kind) {
      case FeatureKind::int64: return cat("MLFeatureValue(int64: ", value, ")");
      case FeatureKind::float64: return cat("MLFeatureValue(double: ", value, ")");
      case FeatureKind::string: return cat("MLFeatureValue(string: ", value, ")");
      case FeatureKind::image: return cat("MLFeatureValue(pixelBuffer: ", value, ")");
      case FeatureKind::dictionary:
        return cat("try! MLFeatureValue(dictionary: Dictionary(uniqueKeysWithValues: ", value,
                   ".map { (AnyHashable($0.key), NSNumber(value: $0.value)) }))");
      case FeatureKind::sequence:
        return strings ? cat("MLFeatureValue(sequence: MLSequence(strings: ", value, "))")
                       : cat("MLFeatureValue(sequence: MLSequence(int64s: ", value, ".map { NSNumber(value: $0) }))");
      case FeatureKind::multi_array:
      case FeatureKind::state: break;
    }
    return cat("MLFeatureValue(multiArray: ", value, ")");
  }

  static std::string value_of(const Field& f) {
    const std::string value = cat("provider.featureValue(for: ", literal(f.feature.name, true), ")!.");
    const bool strings = f.feature.string_keys;
    switch (f.feature.kind) {
      case FeatureKind::int64: return value + "int64Value";
      case FeatureKind::float64: return value + "doubleValue";
      case FeatureKind::string: return value + "stringValue";
      case FeatureKind::image: return value + "imageBufferValue!";
      case FeatureKind::dictionary:
        return cat("Dictionary(uniqueKeysWithValues: ", value, "dictionaryValue.map { (",
                   strings ? "$0.key as! String" : "($0.key as! NSNumber).int64Value", ", $0.value.doubleValue) })");
      case FeatureKind::sequence:
        return value + (strings ? "sequenceValue!.stringValues" : "sequenceValue!.int64Values.map { $0.int64Value }");
      case FeatureKind::multi_array:
      case FeatureKind::state: break;
    }
    return value + "multiArrayValue!";
  }

  std::string parameters(bool defaults, bool shaped = false) const {
    return each(model.inputs, ", ", [&](const Field& f) {
      return cat(f.identifier, ": ", type(f, shaped), defaults && f.feature.optional ? " = nil" : "");
    });
  }

  std::string passed() const {
    return each(model.inputs, ", ", [](const Field& f) { return cat(f.identifier, ": ", f.identifier); });
  }

  static bool is_array(const Field& f) { return f.feature.kind == FeatureKind::multi_array; }
  static bool is_image(const Field& f) { return f.feature.kind == FeatureKind::image; }

  bool takes_arrays() const { return std::any_of(model.inputs.begin(), model.inputs.end(), is_array); }

  /// The attribute of a declaration that names MLShapedArray: Macs with Intel processors lack Float16.
  std::string shaped_attribute(bool half) const {
    const std::string general = since(with_shaped_arrays);
    std::string out = general.empty() ? "" : cat("    ", general, "\n");
    if (!half) return out;
    out +=
        "    #if (os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64)\n"
        "    @available(macOS, unavailable)\n    @available(macCatalyst, unavailable)\n";
    if (model.specification_version < with_half_on_mac) out += "    #else\n    @available(macOS 15.0, *)\n";
    return out + "    #endif\n";
  }

  std::string shaped_inputs_attribute() const {
    return shaped_attribute(std::any_of(model.inputs.begin(), model.inputs.end(),
                                        [](const Field& f) { return is_array(f) && element(f) == "Float16"; }));
  }

  Words words() const {
    const bool any = std::atoi(options.swift_version.c_str()) >= 6;
    return {{"class", model.class_name},
            {"resource", literal(model.resource, true)},
            {"access", access()},
            {"available", swift_available(model.specification_version)},
            {"any", any ? "any " : ""},
            {"base", options.global_module ? "NSObject, MLFeatureProvider" : "MLFeatureProvider"},
            {"model_base", options.global_module ? " : NSObject" : ""},
            {"override", options.global_module ? "override " : ""},
            {"parameters", parameters(true)},
            {"passed", passed()}};
  }

  std::string objc_name(const char* suffix) const {
    return options.global_module ? cat("@objc(", model.class_name, suffix, ")\n@objcMembers\n") : "";
  }

  std::string image_conversion(const Field& f, const char* label) const {
    const bool gray = f.feature.image.color == import::ColorSpace::grayscale;
    const bool half = f.feature.image.color == import::ColorSpace::grayscale_float16;
    return cat("try MLFeatureValue(", label, ": ", f.identifier, ", pixelsWide: ", f.feature.image.width,
               ", pixelsHigh: ", f.feature.image.height, ", pixelFormatType: ",
               gray   ? "kCVPixelFormatType_OneComponent8"
               : half ? "kCVPixelFormatType_OneComponent16Half"
                      : "kCVPixelFormatType_32ARGB",
               ", options: nil).imageBufferValue!");
  }

  static std::string capitalized(std::string name) {
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    return name;
  }

  /// Initializers and setters that take a CGImage or the URL of a picture.
  std::string image_members() const {
    std::string out;
    for (const auto& [label, suffix, type] : {std::tuple{"cgImage", "With", "CGImage"}, {"imageAt", "At", "URL"}}) {
      if (std::none_of(model.inputs.begin(), model.inputs.end(), is_image)) break;
      Words w = words();
      w["since"] = since(with_images).empty() ? "" : "    " + since(with_images);
      w["parameters"] = each(model.inputs, ", ", [&, suffix = suffix, type = type](const Field& f) {
        if (!is_image(f)) return cat(f.identifier, ": ", SwiftWriter::type(f), f.feature.optional ? " = nil" : "");
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

  std::string input() const {
    Words w = words();
    w["objc"] = objc_name("Input");
    w["properties"] = each(model.inputs, "", [&](const Field& f) {
      return cat("\n    /// ", documentation(f), "\n    ", access(), "var ", f.identifier, ": ", type(f),
                 f.feature.optional ? " = nil\n" : "\n");
    });
    w["names"] = each(model.inputs, ", ", [](const Field& f) { return literal(f.feature.name, true); });
    w["values"] = each(model.inputs, "", [](const Field& f) {
      return cat("        if featureName == ", literal(f.feature.name, true), " {\n            return ",
                 f.feature.optional ? cat(f.identifier, ".map { ", feature_value(f, "$0"), " }")
                                    : feature_value(f, f.identifier),
                 "\n        }\n");
    });
    w["assignments"] = each(
        model.inputs, "", [](const Field& f) { return cat("        self.", f.identifier, " = ", f.identifier, "\n"); });
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

  std::string output() const {
    Words w = words();
    w["objc"] = objc_name("Output");
    w["properties"] = each(model.outputs, "", [&](const Field& f) {
      const std::string comment = cat("\n    /// ", documentation(f), "\n");
      std::string out = cat(comment, "    ", access(), "var ", f.identifier, ": ", bare_type(f), " {\n        ",
                            value_of(f), "\n    }\n");
      if (is_array(f))
        out += cat(comment, shaped_attribute(element(f) == "Float16"), "    ", access(), "var ", f.identifier,
                   "ShapedArray: ", bare_type(f, true), " {\n        ", bare_type(f, true), "(", f.identifier,
                   ")\n    }\n");
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

  std::string states() const {
    if (model.states.empty()) return "";
    Words w = words();
    w["since"] = since(with_states).empty() ? "" : "    " + since(with_states);
    w["names"] = each(model.states, "", [](const Field& f) { return cat("    /// - ", documentation(f), "\n"); });
    return fill(R"(
    /// New buffers, filled with zeros:
$names$$since$
    $access$func makeState() -> MLState {
        model.makeState()
    }

    /// Predicts with buffers of makeState(), which it changes
$since$
    $access$func prediction(input: $class$Input, using state: MLState, options: MLPredictionOptions = MLPredictionOptions()) throws -> $class$Output {
        let outFeatures = try model.prediction(from: input, using: state, options: options)
        return $class$Output(features: outFeatures)
    }

    /// Predicts asynchronously with buffers of makeState(), which it changes
$since$
    $access$func prediction(input: $class$Input, using state: MLState, options: MLPredictionOptions = MLPredictionOptions()) async throws -> $class$Output {
        let outFeatures = try await model.prediction(from: input, using: state, options: options)
        return $class$Output(features: outFeatures)
    }
)",
                w);
  }

  std::string convenience(bool shaped) const {
    Words w = words();
    w["parameters"] = parameters(false, shaped);
    w["attribute"] = shaped ? shaped_inputs_attribute() : "";
    w["documentation"] = each(model.inputs, "", [](const Field& f) {
      return cat("    ///   - ", f.identifier, ": ", documentation(f), "\n");
    });
    return fill(R"(
    /// Predicts from the values of the inputs
    /// - Parameters:
$documentation$$attribute$    $access$func prediction($parameters$) throws -> $class$Output {
        let input_ = $class$Input($passed$)
        return try self.prediction(input: input_)
    }
)",
                w);
  }

  std::string model_class() const {
    Words w = words();
    auto attribute = [&](const char* name, int version) {
      w[name] = since(version).empty() ? "" : "    " + since(version);
    };
    attribute("configurable", with_configuration);
    attribute("loadable", with_async_load);
    attribute("awaitable", with_shaped_arrays);
    attribute("async", with_async_prediction);
    w["objc"] = objc_name("");
    w["summary"] = model.summary.empty() ? "" : cat("/// ", model.summary, " (", model.resource, ")");
    // Without the initializer of old systems, the one with a configuration may have a default.
    const bool old = model.specification_version < with_async_load;
    w["configuration"] = old ? "MLModelConfiguration" : "MLModelConfiguration = MLModelConfiguration()";
    w["old"] = !old ? ""
                    : fill(R"(
    /// Loads the model of this bundle, and ends the program where that fails
    @available(*, deprecated, message: "Use init(configuration:) and handle errors.")
    $access$$override$convenience init() {
        try! self.init(contentsOf: type(of:self).urlOfModelInThisBundle)
    }
)",
                           w);
    w["convenience"] = model.inputs.empty() ? "" : convenience(false) + (takes_arrays() ? convenience(true) : "");
    w["states"] = states();
    return fill(R"(
/// Loads the model and predicts
$summary$
$available$
$objc$$access$class $class$$model_base$ {
    $access$let model: MLModel

    /// Where the model is when it lies in the bundle of this class
    class var urlOfModelInThisBundle : URL {
        let bundle = Bundle(for: self)
        return bundle.url(forResource: $resource$, withExtension:"mlmodelc")!
    }

    /// Wraps a model that is loaded already
    $access$init(model: MLModel) {
        self.model = model
    }
$old$
    /// Loads the model of this bundle
$configurable$
    $access$convenience init(configuration: $configuration$) throws {
        try self.init(contentsOf: type(of:self).urlOfModelInThisBundle, configuration: configuration)
    }

    /// Loads a compiled model
    $access$convenience init(contentsOf modelURL: URL) throws {
        try self.init(model: MLModel(contentsOf: modelURL))
    }

    /// Loads a compiled model under a configuration
$configurable$
    $access$convenience init(contentsOf modelURL: URL, configuration: MLModelConfiguration) throws {
        try self.init(model: MLModel(contentsOf: modelURL, configuration: configuration))
    }

    /// Loads the model of this bundle and then calls the handler
$loadable$
    $access$class func load(configuration: MLModelConfiguration = MLModelConfiguration(), completionHandler handler: @escaping (Swift.Result<$class$, Error>) -> Void) {
        load(contentsOf: self.urlOfModelInThisBundle, configuration: configuration, completionHandler: handler)
    }

    /// Loads the model of this bundle asynchronously
$awaitable$
    $access$class func load(configuration: MLModelConfiguration = MLModelConfiguration()) async throws -> $class$ {
        try await load(contentsOf: self.urlOfModelInThisBundle, configuration: configuration)
    }

    /// Loads a compiled model and then calls the handler
$loadable$
    $access$class func load(contentsOf modelURL: URL, configuration: MLModelConfiguration = MLModelConfiguration(), completionHandler handler: @escaping (Swift.Result<$class$, Error>) -> Void) {
        MLModel.load(contentsOf: modelURL, configuration: configuration) { result in
            switch result {
            case .failure(let error):
                handler(.failure(error))
            case .success(let model):
                handler(.success($class$(model: model)))
            }
        }
    }

    /// Loads a compiled model asynchronously
$awaitable$
    $access$class func load(contentsOf modelURL: URL, configuration: MLModelConfiguration = MLModelConfiguration()) async throws -> $class$ {
        let model = try await MLModel.load(contentsOf: modelURL, configuration: configuration)
        return $class$(model: model)
    }

    /// Predicts with the default function
    $access$func prediction(input: $class$Input) throws -> $class$Output {
        try self.prediction(input: input, options: MLPredictionOptions())
    }

    /// Predicts with the default function
    $access$func prediction(input: $class$Input, options: MLPredictionOptions) throws -> $class$Output {
        let outFeatures = try model.prediction(from: input, options: options)
        return $class$Output(features: outFeatures)
    }

    /// Predicts asynchronously with the default function
$async$
    $access$func prediction(input: $class$Input, options: MLPredictionOptions = MLPredictionOptions()) async throws -> $class$Output {
        let outFeatures = try await model.prediction(from: input, options: options)
        return $class$Output(features: outFeatures)
    }
$states$$convenience$
    /// Predicts for each of the inputs
$configurable$
    $access$func predictions(inputs: [$class$Input], options: MLPredictionOptions = MLPredictionOptions()) throws -> [$class$Output] {
        let batchIn = MLArrayBatchProvider(array: inputs)
        let batchOut = try model.predictions(from: batchIn, options: options)
        var results : [$class$Output] = []
        results.reserveCapacity(inputs.count)
        for i in 0..<batchOut.count {
            results.append($class$Output(features: batchOut.features(at: i)))
        }
        return results
    }
}
)",
                w);
  }
};

}  // namespace

Sources write_swift(const import::ModelDescription& description, const std::string& model_name,
                    const GenerateOptions& options) {
  const SwiftWriter writer{describe_interface(description, model_name, {true, swift_reserved, core_ml_types}), options};
  const std::string file = writer.model.class_name + ".swift";
  return {{file, cat("//\n// ", file, "\n//\n// Generated from the model; edits are lost.\n//\n\nimport CoreML\n\n",
                     writer.input(), writer.output(), writer.model_class())}};
}

}  // namespace moka::compiler
