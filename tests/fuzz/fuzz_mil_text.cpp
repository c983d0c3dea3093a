// SPDX-License-Identifier: Apache-2.0
// Input: MIL text. A program that was read must print to a text that reads and prints the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/budget.h"
#include "ir/text_printer.h"
#include "ir/text_reader.h"
#include "ir/verifier.h"

using namespace moka::ir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  moka::MemoryBudget budget(size_t{64} << 20);
  TextOptions options;
  options.budget = &budget;
  // Files contain zeros and are small.
  options.blob = [](std::string_view, uint64_t, const Type& type) -> moka::Result<Tensor> {
    if (MOKA_TRY(storage_bytes(type.dtype(), type.shape())) > 4096)
      return moka::fail(moka::ErrorCode::out_of_budget, "too large");
    return Tensor::zeros(type.dtype(), type.shape());
  };
  const auto program = read_text({reinterpret_cast<const char*>(data), size}, moka::ops::table(), options);
  if (!program.ok()) return 0;
  if (!verify(*program).ok()) std::abort();
  const std::string first = print_text(*program);
  const auto again = read_text(first, moka::ops::table(), options);
  if (!again.ok()) {
    if (again.error().code() == moka::ErrorCode::out_of_budget) return 0;
    std::abort();
  }
  if (print_text(*again) != first) std::abort();
  return 0;
}
