// SPDX-License-Identifier: Apache-2.0
#include "page.h"

namespace moka::cli {

std::string with_data(std::string page, const std::string& mark, const Json& data) {
  // A text from the model must not end the HTML element that holds the JSON. These characters only occur in strings.
  std::string text;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<')
      text += "\\u003c";
    else if (c == '&')
      text += "\\u0026";
    else
      text += c;
  }
  return page.replace(page.find(mark), mark.size(), text);
}

}  // namespace moka::cli
