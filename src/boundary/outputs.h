// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/description.h"
#include "ir/tensor.h"
#include "moka/feature.h"

namespace moka::boundary {

/// Converts an output of the function into `value`. Uses the memory of `value` if it fits.
Status store_output(const import::FeatureDescription& feature, const ir::Type& type, const ir::TensorView& view,
                    FeatureValue& value);

}  // namespace moka::boundary
