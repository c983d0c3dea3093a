// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {

/// Writes an `lstm` that limits its cell state as a Scan over the steps, because ONNX's LSTM has no such limit.
void write_limited_lstm(Call& c);

}  // namespace moka::compiler::onnx
