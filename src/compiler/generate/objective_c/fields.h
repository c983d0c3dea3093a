// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/generate/source.h"

/// How generated Objective-C writes the types, values and selectors of fields.
namespace moka::compiler::objective_c {

constexpr std::string_view error_parameter = "(NSError * _Nullable __autoreleasing * _Nullable)error";

/// The attributes of a class that needs the systems of this specification version.
std::string available(int version);

bool is_required(const Field& f);

/// The type without its nullability.
std::string type_of(const Field& f);

std::string parameter_type(const Field& f);

/// The declaration of the field's property, with its documentation.
std::string property(const Field& f);

/// An MLFeatureValue of the property.
std::string feature_value(const Field& f);

/// The value of an output in `provider`.
std::string value_in(const Field& f, const char* provider);

/// "WithX:(T)x y:(U)y". The first part of a selector ends in the first name. `image_suffix` follows the names of
/// images.
std::string selector(std::string_view begin, const std::vector<Field>& fields,
                     const std::function<std::string(const Field&)>& argument, std::string_view image_suffix = "");

/// The selector with the parameters of a declaration.
std::string declared(std::string_view begin, const std::vector<Field>& fields);

/// The selector with the fields' names as arguments.
std::string called(std::string_view begin, const std::vector<Field>& fields);

}  // namespace moka::compiler::objective_c
