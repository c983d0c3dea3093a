// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compress/encoding.h"
#include "format/message/message.h"
#include "format/weights/weight_file.h"

namespace moka::compress {

/// The name of the file that a compressed model has.
constexpr std::string_view kWeightFile = "weights/weight.bin";
/// The name in values that set_value writes, until all other values have moved to the file, too.
constexpr std::string_view kNewFile = "@new";

/// The value of a key in a map of messages; nullopt: there is none.
Result<std::optional<format::Message>> find(const format::Message& message, std::string_view map, std::string_view key);

/// The dimensions of a ValueType if it is a tensor of known shape.
Result<std::optional<Shape>> shape_of(const format::Message& value_type);

/// Sets the dimensions of a TensorType that has none.
Status set_shape(format::Message tensor_type, const Shape& shape);

/// Sets a Value: small parts as an immediate value, others in the file.
Status set_value(format::Message value, const Part& part, format::WeightFile& file);

/// The operations of an encoding. The last one gets `name` as its name and its result.
Result<std::vector<format::Message>> operations_of(const Encoding& encoding, const std::string& name, Form form,
                                                   format::WeightFile& file);

}  // namespace moka::compress
