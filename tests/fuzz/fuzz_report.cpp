// SPDX-License-Identifier: Apache-2.0
// Input: a saved report. One that was read must be the same after writing and reading it again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "moka/report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  moka::Report report;
  try {
    report = moka::parse_report({reinterpret_cast<const char*>(data), size});
  } catch (const moka::Exception& e) {
    if (e.kind() != moka::ErrorKind::malformed) std::abort();
    return 0;
  }
  const std::string text = moka::to_json(report);
  if (moka::to_json(moka::parse_report(text)) != text) std::abort();
  (void)moka::to_json(moka::compare_reports(report, report));
  (void)moka::report_page(report);
  return 0;
}
