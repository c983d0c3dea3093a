// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/message/node.h"

namespace moka::format {

/// "a 32-bit integer", "a list of texts", "one of RGB, BGR": what a field takes, in messages.
std::string description_of(const FieldDef& def);

/// Values in one field of the wire, several when it is packed.
size_t packed_count(const WireField& field);
/// Appends the values of one field of the wire. Error malformed.
Status read_scalars(const WireField& field, std::vector<Scalar>& out);

/// Errors: invalid_argument (the value does not fit the field; names the field).
Result<WireField> write_scalar(const FieldDef& def, const Scalar& value);
/// The values of a repeated field: numbers packed in one field, others in a field each.
Result<std::vector<WireField>> write_scalars(const FieldDef& def, std::span<const Scalar> values);

}  // namespace moka::format
