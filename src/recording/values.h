// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "moka/recording.h"
#include "report/field.h"

/// Values of features in recordings and in files of inputs (docs/recordings.md).
namespace moka::recording {

using reporting::Field;
using reporting::Json;

std::string base64(std::span<const std::byte> bytes);

Json json_of(const FeatureValue& value);
Json json_of(const Features& features);
Json json_of(const RecordedSample& sample);

/// Throws BadField.
FeatureValue read_value(const Field& from);
Features read_features(const Field& from);
/// Nothing where the array is recorded as a whole.
std::optional<RecordedSample> read_sample(const Field& from);

/// Every `step`-th element in row-major order.
MultiArray sampled(const MultiArray& array, int64_t step);

}  // namespace moka::recording
