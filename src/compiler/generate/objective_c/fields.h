#pragma once

#include "compiler/generate/source.h"

/// How generated Objective-C writes the types, values and selectors of fields.
namespace moka::compiler::objective_c {

constexpr std::string_view error_parameter = "(NSError * _Nullable __autoreleasing * _Nullable)error";
std::string available(int version);
bool is_scalar(const Field& f);
bool is_required(const Field& f);

/// The type without its nullability.
std::string type_of(const Field& f);

std::string parameter_type(const Field& f);

/// Whether the compiler assumes that a getter of this name transfers ownership: "new_state", "copyOf".
bool names_an_owned_object(std::string_view name);

std::string property(const Field& f);
std::string feature_value(const Field& f);

/// The value of an output in `provider`.
std::string value_in(const Field& f, const char* provider);

/// "WithX:(T)x y:(U)y". The first part of a selector ends in the first name. `image_suffix` follows the names of
/// images.
std::string selector(std::string_view begin, const std::vector<Field>& fields,
                     const std::function<std::string(const Field&)>& argument, std::string_view image_suffix = "");

std::string declared(std::string_view begin, const std::vector<Field>& fields);
std::string called(std::string_view begin, const std::vector<Field>& fields);

}  // namespace moka::compiler::objective_c
