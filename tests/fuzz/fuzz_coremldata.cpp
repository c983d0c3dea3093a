// SPDX-License-Identifier: Apache-2.0
// Input: a compiled model's coremldata.bin.
#include <cstdint>

#include "format/mlmodel/decode.h"
#include "format/mlmodelc/coremldata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  auto parsed = moka::format::parse_coremldata(bytes);
  if (!parsed.ok()) return 0;
  auto budget = std::make_shared<moka::MemoryBudget>(size_t{256} << 20);
  (void)moka::format::decode_model(parsed->spec, budget).ok();
  (void)moka::format::decode_description(parsed->description, budget).ok();
  return 0;
}
