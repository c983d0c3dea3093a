// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/objective_c/fields.h"
#include "compiler/generate/objective_c/writer.h"

namespace moka::compiler::objective_c {

std::string Writer::output_from(const char* provider) const {
  return cat("[[", model.class_name, "Output alloc] ",
             model.outputs.empty()
                 ? "init"
                 : selector("initWith", model.outputs, [&](const Field& f) { return value_in(f, provider); }),
             "]");
}

std::string Writer::states() const {
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

std::string Writer::convenience() const {
  if (model.inputs.empty()) return "";
  return cat("\n- (nullable ", model.class_name, "Output *)", declared("predictionFrom", model.inputs),
             " error:", error_parameter, " {\n    ", model.class_name, "Input *input_ = [[", model.class_name,
             "Input alloc] ", called("initWith", model.inputs),
             "];\n    return [self predictionFromFeatures:input_ error:error];\n}\n");
}

std::string Writer::model_implementation() const {
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

}  // namespace moka::compiler::objective_c
