// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// Words that generated code cannot use as names: the reserved words of each language, and names that the generated
/// code itself defines. White space separates them.
namespace moka::compiler {

/// Reserved words of C99, and of C++ because C++ may include the header.
constexpr std::string_view c_reserved = R"(
and asm auto bool break case catch char class const continue default delete do double else enum explicit
export extern false float for friend goto if inline int long mutable namespace new not operator or private
protected public register restrict return short signed sizeof static struct switch template this throw true
try typedef typeid typename union unsigned using virtual void volatile while xor NULL _Alignas _Alignof
_Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local alignas alignof and_eq
bitand bitor compl const_cast constexpr decltype noexcept not_eq nullptr or_eq static_assert thread_local
typeof xor_eq linux unix EOF errno
)";

constexpr std::string_view cpp_reserved = R"(
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
co_await co_return co_yield compl concept const consteval constexpr constinit const_cast continue decltype
default delete do double else enum explicit export extern false float for friend goto if inline int long
mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register requires
return short signed sizeof static struct switch template this throw true try typedef typeid typename union
unsigned using virtual void volatile wchar_t while xor xor_eq moka std features input options static_assert
static_cast dynamic_cast reinterpret_cast thread_local NULL linux unix values values_ EOF errno
)";

constexpr std::string_view python_reserved = R"(
False None True and as assert async await break class continue def del elif else except finally for from
global if import in is lambda nonlocal not or pass raise return try while with yield self moka np features of
Any Dict List Mapping Optional Path Sequence Union dataclass cls str int float state
)";

constexpr std::string_view swift_reserved = R"(
Any Protocol Self Type actor any as associatedtype async await break case catch class continue default defer
deinit do else enum extension fallthrough false func for guard if import in init inout internal is let nil
open operator precedencegroup private protocol public repeat rethrows return self some static struct subscript
super switch throw throws true try typealias var where while featureName featureNames features provider input_
_ CGImage CVPixelBuffer MLShapedArray
)";

constexpr std::string_view objective_c_reserved = R"(
BOOL _Bool false true NO NULL YES asm auto bool break case char class configuration const continue copy
default description do double else enum error extern featureNames float for goto hash id if in init inline
input_ inout int long model nil oneway options out register restrict return self short signed sizeof static
struct super superclass switch typedef typeof union unsigned void volatile while new alloc retain release
state completionHandler CGImageRef CVPixelBufferRef NSArray NSBundle NSDictionary NSError NSSet NSString NSURL
autorelease dealloc finalize linux retainCount unix EOF errno
)";

/// The classes of Core ML and Foundation that generated Swift and Objective-C use.
constexpr std::string_view core_ml_types = R"(
MLArrayBatchProvider MLDictionaryFeatureProvider MLFeatureProvider MLFeatureValue MLModel MLModelConfiguration
MLMultiArray MLPredictionOptions MLSequence MLState NSNumber NSObject
)";

}  // namespace moka::compiler
