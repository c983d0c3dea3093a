// SPDX-License-Identifier: Apache-2.0
// The part of Foundation that generated code uses, declared for the compiler's front end.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef signed char BOOL;
#define YES __objc_yes
#define NO __objc_no
#define nil NULL
typedef unsigned long NSUInteger;
typedef long NSInteger;
#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#define NS_UNAVAILABLE __attribute__((unavailable))
#define NS_DESIGNATED_INITIALIZER __attribute__((objc_designated_initializer))
#define API_AVAILABLE(...)

@protocol NSObject
@end
__attribute__((objc_root_class))
@interface NSObject<NSObject>
+ (nonnull instancetype)alloc;
- (null_unspecified instancetype)init NS_DESIGNATED_INITIALIZER;
- (nonnull Class)class;
+ (nonnull Class)class;
- (void)dealloc;
@end

NS_ASSUME_NONNULL_BEGIN
@interface NSString : NSObject
- (BOOL)isEqualToString:(NSString*)other;
@end
@interface NSConstantString : NSString
@end
@interface NSNumber : NSObject
@property(readonly) long long longLongValue;
@property(readonly) double doubleValue;
@end
@interface NSArray<__covariant T> : NSObject
+ (instancetype)arrayWithObjects:(const T _Nonnull[_Nullable])objects count:(NSUInteger)count;
@property(readonly) NSUInteger count;
@end
@interface NSMutableArray<T> : NSArray <T>
+ (instancetype)arrayWithCapacity:(NSUInteger)capacity;
- (void)addObject:(T)object;
@end
@interface NSSet<T> : NSObject
+ (instancetype)setWithArray:(NSArray<T>*)array;
@end
@interface NSDictionary<__covariant K, __covariant V> : NSObject
@end
@interface NSError : NSObject
@end
@interface NSURL : NSObject
+ (NSURL*)fileURLWithPath:(NSString*)path;
@end
@interface NSBundle : NSObject
+ (NSBundle*)bundleForClass:(Class)type;
- (nullable NSString*)pathForResource:(NSString*)name ofType:(NSString*)extension;
@end
NS_ASSUME_NONNULL_END
