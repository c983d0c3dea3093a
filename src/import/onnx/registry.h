// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "import/onnx/node.h"

namespace moka::import::onnx {
/// The operators of each file operators/<family>.cpp; the build generates the list.
std::span<const std::span<const OperatorImport>> families();
}  // namespace moka::import::onnx
