#pragma once

#include <string_view>

#include "editing/features.h"
#include "editing/operations.h"

namespace moka::editing {

/// An element type of arrays by its names in the description, in programs and in MIL text.
struct ElementName {
  std::string_view name;     ///< "float32"
  std::string_view array;    ///< ArrayDataType: "FLOAT32"
  std::string_view program;  ///< MILSpec.DataType; empty: programs have no features of it
  std::string_view mil;      ///< "fp32"
  int version;               ///< of the specification that has features of this type
};
/// Error invalid_argument: an element type that no feature has; lists those that features have.
Result<const ElementName*> element_named(std::string_view name);
/// nullptr for others.
const ElementName* element_of_array(std::string_view array);
const ElementName* element_of_program(std::string_view program);

/// Inserts a `cast` of a value to the elements of `type`, which is its type. Returns the name of the result.
Result<std::string> insert_cast(Operations& ops, size_t& at, const std::string& value, const TensorType& type,
                                const std::string& name);

/// Changes the element type of an array feature. Programs get a `cast`, or lose the one that they had; the description
/// of networks and classic models changes alone, because they convert. In a pipeline, each stage that the feature
/// passes is changed. Raises the specification version where the type needs it. Errors: not_found, invalid_argument
/// (another feature than an array, a type that this kind of model cannot have).
Status set_element(Message model, std::string_view feature, std::string_view element, Side side);

}  // namespace moka::editing
