#pragma once

#include "compiler/generate/source.h"

/// How generated Swift writes the types and values of fields.
namespace moka::compiler::swift {

std::string available(int version);
std::string element(const Field& f);
std::string bare_type(const Field& f, bool shaped = false);
std::string type_of(const Field& f, bool shaped = false);

/// An MLFeatureValue of `value`, which must be present.
std::string feature_value(const Field& f, const std::string& value);

std::string value_of(const Field& f);
bool is_array(const Field& f);

}  // namespace moka::compiler::swift
