// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "format/mlmodel/payload_cutter.h"

namespace moka::format {

/// The inverse of cut_payloads for neural networks and nearest-neighbors classifiers: a serialized Model with every
/// payload_index replaced by its payload. Errors: malformed (an index without a payload), unsupported (a payload of a
/// tensor).
Result<std::string> fill_payloads(std::string_view model, const std::vector<Payload>& payloads);

}  // namespace moka::format
