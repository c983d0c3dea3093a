// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/generate/source.h"

/// How generated Swift writes the types and values of fields.
namespace moka::compiler::swift {

/// The attribute of a class that needs the systems of this specification version.
std::string available(int version);

/// The element type of an array.
std::string element(const Field& f);

/// The type without the mark of optional fields. `shaped`: arrays are MLShapedArray instead of MLMultiArray.
std::string bare_type(const Field& f, bool shaped = false);
std::string type_of(const Field& f, bool shaped = false);

/// An MLFeatureValue of `value`, which must be present.
std::string feature_value(const Field& f, const std::string& value);

/// The value of an output in `provider`.
std::string value_of(const Field& f);

bool is_array(const Field& f);

}  // namespace moka::compiler::swift
