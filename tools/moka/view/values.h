// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json.h"
#include "moka/model.h"

namespace moka::cli {

/// {"values": [{"operation", "value", ...facts}], "complete"}, in the order of computation. Values in loops come once
/// for each iteration. "complete" is false when there are more than 20000 values.
Json values_of(const Model& model, const Features& inputs);

/// The value at `index` of values_of as shown_value gives it. Throws UsageError for another index.
Json value_of(const Model& model, const Features& inputs, size_t index);

/// values_of with the same values of `other`, the same model under another setting. Values that both compute have
/// "difference", the greatest one of their elements; "relative", its fraction of the greatest magnitude; "differs",
/// true when that is more than rounding explains; and "other", the facts there. "first" is the index of the first value
/// that differs; absent: none. moka/difference.h says when values differ.
Json compared_values(const Model& model, const Model& other, const Features& inputs);

}  // namespace moka::cli
