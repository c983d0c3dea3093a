// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "page.h"
#include "report.h"

namespace moka::cli {

// tools/moka/report_page.html, which the build embeds.
extern const unsigned char report_page_bytes[];
extern const unsigned long report_page_size;

std::string report_page(const Json& report) {
  return with_data({reinterpret_cast<const char*>(report_page_bytes), report_page_size}, "/*REPORT*/", report);
}

}  // namespace moka::cli
