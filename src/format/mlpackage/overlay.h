// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.h"
#include "base/error.h"

namespace moka::proto {
class ModelDescription;
}

namespace moka::format {

/// Descriptive text that Xcode keeps beside the specification of an .mlpackage. Its placeholder "--" means none, and is
/// kept only if `verbatim`.

/// "External Metadata Overlay": author, license, version and short description of the model.
Status apply_metadata_overlay(const Bytes& json, bool verbatim, proto::ModelDescription& description);
/// "External FeatureDescription Overlay": short descriptions of inputs, outputs and training inputs.
Status apply_feature_overlay(const Bytes& json, bool verbatim, proto::ModelDescription& description);

}  // namespace moka::format
