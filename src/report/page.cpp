// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "report/json.h"

namespace moka {

namespace reporting {

// src/report/page.html, which the build embeds.
extern const unsigned char page_bytes[];
extern const unsigned long page_size;

}  // namespace reporting

std::string report_page(const Report& report) {
  constexpr std::string_view kMark = "/*REPORT*/";
  std::string page(reinterpret_cast<const char*>(reporting::page_bytes), reporting::page_size);
  // A text from the model must not end the HTML element that holds the JSON. These characters only occur in strings.
  std::string data;
  for (const char c : reporting::dumped(reporting::report_json(report))) {
    if (c == '<')
      data += "\\u003c";
    else if (c == '&')
      data += "\\u0026";
    else
      data += c;
  }
  return page.replace(page.find(kMark), kMark.size(), data);
}

}  // namespace moka
