// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "base/error.h"
#include "compiler/generate/swift/fields.h"
#include "compiler/generate/swift/writer.h"

namespace moka::compiler::swift {

std::string Writer::states() const {
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

std::string Writer::convenience(bool shaped) const {
  Words w = words();
  w["parameters"] = parameters(false, shaped);
  w["attribute"] = shaped ? shaped_inputs_attribute() : "";
  w["documentation"] = each(
      model.inputs, "", [](const Field& f) { return cat("    ///   - ", f.identifier, ": ", documentation(f), "\n"); });
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

namespace {
constexpr std::string_view kModelClass = R"(
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
)";
}  // namespace

std::string Writer::model_class() const {
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
  return fill(kModelClass, w);
}

}  // namespace moka::compiler::swift
