// SPDX-License-Identifier: Apache-2.0
// The part of Core ML that generated code uses, declared for the compiler's front end.
#pragma once
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN
typedef struct __CVBuffer* CVPixelBufferRef;
typedef struct CGImage* CGImageRef;
CVPixelBufferRef _Nullable CVPixelBufferRetain(CVPixelBufferRef _Nullable buffer);
void CVPixelBufferRelease(CVPixelBufferRef _Nullable buffer);
enum : unsigned { kCVPixelFormatType_32ARGB = 32, kCVPixelFormatType_OneComponent8 = 8 };

@interface MLMultiArray : NSObject
@end
@interface MLSequence : NSObject
@end
@interface MLFeatureValue : NSObject
+ (instancetype)featureValueWithInt64:(int64_t)value;
+ (instancetype)featureValueWithDouble:(double)value;
+ (instancetype)featureValueWithString:(NSString*)value;
+ (instancetype)featureValueWithMultiArray:(MLMultiArray*)value;
+ (instancetype)featureValueWithPixelBuffer:(CVPixelBufferRef)value;
+ (instancetype)featureValueWithSequence:(MLSequence*)value;
+ (nullable instancetype)featureValueWithDictionary:(NSDictionary<id, NSNumber*>*)value
                                              error:(NSError* _Nullable __autoreleasing* _Nullable)error;
+ (nullable instancetype)featureValueWithCGImage:(CGImageRef)image
                                      pixelsWide:(NSInteger)wide
                                      pixelsHigh:(NSInteger)high
                                 pixelFormatType:(unsigned)type
                                         options:(nullable NSDictionary*)options
                                           error:(NSError* _Nullable __autoreleasing* _Nullable)error;
+ (nullable instancetype)featureValueWithImageAtURL:(NSURL*)url
                                         pixelsWide:(NSInteger)wide
                                         pixelsHigh:(NSInteger)high
                                    pixelFormatType:(unsigned)type
                                            options:(nullable NSDictionary*)options
                                              error:(NSError* _Nullable __autoreleasing* _Nullable)error;
@property(readonly) int64_t int64Value;
@property(readonly) double doubleValue;
@property(readonly) NSString* stringValue;
@property(readonly, nullable) MLMultiArray* multiArrayValue;
@property(readonly, nullable) CVPixelBufferRef imageBufferValue;
@property(readonly) NSDictionary* dictionaryValue;
@property(readonly, nullable) MLSequence* sequenceValue;
@end
@protocol MLFeatureProvider <NSObject>
@property(readonly) NSSet<NSString*>* featureNames;
- (nullable MLFeatureValue*)featureValueForName:(NSString*)featureName;
@end
@protocol MLBatchProvider <NSObject>
@property(readonly) NSInteger count;
- (id<MLFeatureProvider>)featuresAtIndex:(NSInteger)index;
@end
@interface MLArrayBatchProvider : NSObject <MLBatchProvider>
- (instancetype)initWithFeatureProviderArray:(NSArray<id<MLFeatureProvider>>*)array;
@end
@interface MLModelConfiguration : NSObject
@end
@interface MLPredictionOptions : NSObject
@end
@interface MLState : NSObject
@end
typedef void (^MLHandler)(id<MLFeatureProvider> _Nullable output, NSError* _Nullable error);
@interface MLModel : NSObject
+ (nullable instancetype)modelWithContentsOfURL:(NSURL*)url error:(NSError* _Nullable __autoreleasing* _Nullable)error;
+ (nullable instancetype)modelWithContentsOfURL:(NSURL*)url
                                  configuration:(MLModelConfiguration*)configuration
                                          error:(NSError* _Nullable __autoreleasing* _Nullable)error;
+ (void)loadContentsOfURL:(NSURL*)url
            configuration:(MLModelConfiguration*)configuration
        completionHandler:(void (^)(MLModel* _Nullable model, NSError* _Nullable error))handler;
- (nullable id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)input
                                                 options:(MLPredictionOptions*)options
                                                   error:(NSError* _Nullable __autoreleasing* _Nullable)error;
- (void)predictionFromFeatures:(id<MLFeatureProvider>)input
                       options:(MLPredictionOptions*)options
             completionHandler:(MLHandler)handler;
- (nullable id<MLBatchProvider>)predictionsFromBatch:(id<MLBatchProvider>)batch
                                             options:(MLPredictionOptions*)options
                                               error:(NSError* _Nullable __autoreleasing* _Nullable)error;
- (MLState*)newState;
- (nullable id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)input
                                              usingState:(MLState*)state
                                                 options:(MLPredictionOptions*)options
                                                   error:(NSError* _Nullable __autoreleasing* _Nullable)error;
- (void)predictionFromFeatures:(id<MLFeatureProvider>)input
                    usingState:(MLState*)state
                       options:(MLPredictionOptions*)options
             completionHandler:(MLHandler)handler;
@end
NS_ASSUME_NONNULL_END
