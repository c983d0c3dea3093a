// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <string>
#include <vector>

#include "moka/compiler.h"
#include "moka/model.h"

namespace moka::python {

/// Copies of weight files, from a dict of name to bytes.
std::map<std::string, std::vector<std::byte>> files_of(const nanobind::dict& blobs);
/// A model in the memory of Python objects, which the result keeps.
ModelAssetView asset_of(nanobind::handle specification, const nanobind::dict& blobs);
/// A sentence for each network.
std::vector<std::string> texts_of(const std::vector<EmbeddedNetwork>& networks);

}  // namespace moka::python
