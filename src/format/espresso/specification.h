// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/espresso/network.h"
#include "format/mlmodel/payload_cutter.h"
#include "format/mlmodelc/coremldata.h"

namespace moka::proto {
class Model;
}

namespace moka::format::espresso {

/// Turns `model`, which already has its description, into a neural network with the layers of `net`. Appends weights to
/// `payloads`. `optionals`: the words of neural_network_optionals. Errors: unsupported, malformed; they name the layer.
Status to_specification(const Network& net, const CoreMLData& data, const std::vector<uint64_t>& optionals,
                        proto::Model& model, std::vector<Payload>& payloads);

}  // namespace moka::format::espresso
