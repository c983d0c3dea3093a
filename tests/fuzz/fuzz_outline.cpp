// SPDX-License-Identifier: Apache-2.0
// Input: a specification (.mlmodel) of any kind. The same bytes are also read as MIL text. Outlines never fail.
#include <cstdint>

#include "format/model_file.h"
#include "import/outline.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto budget = std::make_shared<moka::MemoryBudget>(size_t{256} << 20);
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  (void)moka::import::outline_of_text(bytes.text(), {});
  const auto file = moka::format::open_model_bytes(bytes, {}, {budget, true});
  if (!file.ok()) return 0;
  std::vector<std::string> faults;
  (void)moka::import::outline_description(*file, faults);
  (void)moka::import::outline(*file);
  return 0;
}
