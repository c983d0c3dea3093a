// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/objective_c/fields.h"
#include "compiler/generate/objective_c/writer.h"

namespace moka::compiler::objective_c {

std::string Writer::input_interface() const {
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

std::string Writer::output_interface() const {
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

std::string Writer::model_interface() const {
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
                "- (nullable ", model.class_name, "Output *)", declared("predictionFrom", model.inputs),
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

}  // namespace moka::compiler::objective_c
