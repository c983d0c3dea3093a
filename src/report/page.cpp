// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "moka/capture.h"
#include "report/json.h"

namespace moka {

namespace reporting {

// src/report/page.html and capture.html, which the build embeds.
extern const unsigned char page_bytes[];
extern const unsigned long page_size;
extern const unsigned char capture_page_bytes[];
extern const unsigned long capture_page_size;

namespace {

std::string page_with(std::string page, std::string_view mark, const Json& json) {
  // A text from the model must not end the HTML element that holds the JSON. These characters only occur in strings.
  std::string data;
  for (const char c : dumped(json)) {
    if (c == '<')
      data += "\\u003c";
    else if (c == '&')
      data += "\\u0026";
    else
      data += c;
  }
  return page.replace(page.find(mark), mark.size(), data);
}

}  // namespace

}  // namespace reporting

std::string report_page(const Report& report) {
  return reporting::page_with({reinterpret_cast<const char*>(reporting::page_bytes), reporting::page_size},
                              "/*REPORT*/", reporting::report_json(report));
}

std::string capture_page(const Capture& capture) {
  return reporting::page_with(
      {reinterpret_cast<const char*>(reporting::capture_page_bytes), reporting::capture_page_size}, "/*CAPTURE*/",
      reporting::capture_json(capture));
}

}  // namespace moka
