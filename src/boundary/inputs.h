// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/description.h"
#include "ir/array_view.h"
#include "kernel/kernel.h"
#include "moka/feature.h"
#include "runtime/prediction.h"

namespace moka::boundary {

/// The first two of the five dimensions that arrays of legacy neural networks have internally.
struct Leading {
  int64_t sequence = 1, batch = 1;
};
/// The leading dimensions of a value for `feature`; ones when it has none, or when input_type will refuse the value.
Leading leading_of(const import::FeatureDescription& feature, const FeatureValue& value);

/// The IR type of `value` at the boundary of the function, whose input has type `declared`. Checks kind, shape and
/// allowed sizes; errors name the feature, expected and got. `declared` may be the described type or, for inputs that
/// accept rank 5, [sequence, batch, C, H, W]. It must be the latter unless leading_of is all ones.
Result<ir::Type> input_type(const import::FeatureDescription& feature, const ir::Type& declared,
                            const FeatureValue& value);
/// The type of a missing optional input. `batch`: the batch of the given inputs, used when `declared` has rank 5.
Result<ir::Type> default_type(const import::FeatureDescription& feature, const ir::Type& declared, int64_t batch = 1);
/// The type of an input that was given, or else of a missing one (nullptr). Error invalid_argument: it is
/// missing, but not optional.
Result<ir::Type> given_type(const import::FeatureDescription& feature, const ir::Type& declared,
                            const FeatureValue* value, int64_t batch = 1);
/// Whether the default size of a flexible dimension is its smallest or its largest allowed size. 1 counts as the
/// smallest size of a dimension that may be empty.
bool has_default_at_limit(const import::FeatureDescription& feature);

/// What the planes of an image input hold.
kernel::PlaneOrder plane_order(const import::FeatureDescription& feature);
kernel::Pixels pixels_of(const Image& image);
/// Where values are that a prediction takes in another form than the caller has them.
struct InputMemory {
  ir::Dict dict;
  std::unique_ptr<runtime::FittedFrame> frame;
};

/// Sets `to` to what a prediction gets for a given input: the value's own memory, or `memory`, which it sets. The value
/// has passed input_type. Error invalid_argument: numbers that the type of the input, or its described one,
/// lacks.
Status set_input_value(const import::FeatureDescription& feature, const ir::Type& type, const FeatureValue& value,
                       InputMemory& memory, runtime::InputValue& to);
/// What a prediction gets for a missing optional input.
runtime::InputValue default_value(const import::FeatureDescription& feature, const ir::Type& type);

/// One of the two, for the input's value or nullptr.
Status set_given(const import::FeatureDescription& feature, const ir::Type& type, const FeatureValue* value,
                 InputMemory& memory, runtime::InputValue& to);

/// Whether the described multi-array may have this shape.
Status check_array_shape(const import::FeatureDescription& feature, std::span<const int64_t> shape);

/// The same for the array or number of an input, of which the feature's described type must have the numbers too.
Status check_numbers(const import::FeatureDescription& feature, ir::DType to, const ir::ArrayView& array,
                     int64_t first_row = 0);
Status check_numbers(const import::FeatureDescription& feature, ir::DType to, const FeatureValue& value);

}  // namespace moka::boundary
