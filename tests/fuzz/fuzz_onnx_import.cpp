// SPDX-License-Identifier: Apache-2.0
// Input: an ONNX model, which becomes a program.
#include <cstdint>
#include <cstdlib>

#include "import/onnx/import.h"
#include "ir/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto model = moka::format::onnx::read_model(moka::Bytes::copy_of(std::as_bytes(std::span(data, size))));
  if (!model.ok()) return 0;
  auto made = moka::import::onnx::import_model({std::move(model).value(), moka::format::WeightStore()});
  if (made.ok() && !moka::ir::verify(made->program).ok()) std::abort();
  return 0;
}
