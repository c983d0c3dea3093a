// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "editing/features.h"
#include "editing/operations.h"

namespace moka::editing {

/// The names of an element type of arrays: in the description, in programs and in MIL text.
struct ElementName {
  std::string_view name;     ///< "float32"
  std::string_view array;    ///< ArrayDataType: "FLOAT32"
  std::string_view program;  ///< MILSpec.DataType; empty: programs have no features of it
  std::string_view mil;      ///< "fp32"
  int version;               ///< of the specification that has features of this type
};
/// Error invalid_argument if no feature can have the element type. The message lists the ones that features can have.
Result<const ElementName*> element_named(std::string_view name);
/// nullptr for others.
const ElementName* element_of_array(std::string_view array);
const ElementName* element_of_program(std::string_view program);

/// Inserts a `cast` of a value to the element type of `type`, the type of the result. Returns the name of the result.
Result<std::string> insert_cast(Operations& ops, size_t& at, const std::string& value, const TensorType& type,
                                const std::string& name);

/// Changes the element type of an array feature. A program gets a `cast`, or loses one that is no longer needed. For
/// networks and classic models only the description changes, because they convert their features themselves. In a
/// pipeline, every stage is changed that the feature enters or leaves. Raises the specification version if the type
/// needs it. Errors: not_found, invalid_argument (a feature that is not an array, a type that this kind of model cannot
/// have).
Status set_element(Message model, std::string_view feature, std::string_view element, Side side);

}  // namespace moka::editing
