#include <string>

#include "report.h"

namespace moka::cli {

// tools/moka/report_page.html, which the build embeds.
extern const unsigned char report_page_bytes[];
extern const unsigned long report_page_size;

std::string report_page(const Json& report) {
  std::string page(reinterpret_cast<const char*>(report_page_bytes), report_page_size);
  // In JSON these characters occur in strings alone; a text of the model must not end the element that holds it.
  std::string data;
  for (const char c : report.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<')
      data += "\\u003c";
    else if (c == '&')
      data += "\\u0026";
    else
      data += c;
  }
  const std::string mark = "/*REPORT*/";
  return page.replace(page.find(mark), mark.size(), data);
}

}  // namespace moka::cli
